#!/usr/bin/env python3
"""Runs PyTorch's profiler tests against lanescope and against torch.profiler: see README.md here."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Set

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from internals import reason_of  # noqa: E402
from rewrite import rewrite  # noqa: E402

FOLDER = "test/profiler"
LEFT_OUT = {
    "test_cpp_thread.py": "compiles an extension of torch's internals, and each of its tests needs a GPU",
}
TEST_LIMIT_S = 300.0
GROUPS = {
    "both": "pass with torch.profiler and with lanescope",
    "ours": "pass with torch.profiler, fail with lanescope",
    "internals": "pass with torch.profiler; lanescope differs inside, or on purpose: each reason below",
    "torch": "fail with torch.profiler itself",
    "skipped": "skipped by themselves",
}


class Result(NamedTuple):
    outcome: str  # passed, failed, skipped, crashed, timeout
    message: str  # the first line of why
    text: str  # all of it


class Compared(NamedTuple):
    test: str
    group: str
    torch: Result
    lanescope: Result
    reason: str


def unpack(sources: Path, into: Path) -> Path:
    """The folder test/profiler of PyTorch's sources; a tar's is unpacked into `into`. SystemExit when it is not there."""
    if sources.is_dir():
        for folder in (sources, sources / FOLDER):
            if (folder / "test_profiler.py").is_file():
                return folder
        raise SystemExit(f"expected PyTorch's sources or their {FOLDER} in {sources}; test_profiler.py is not there")
    with tarfile.open(sources) as tar:
        for member in tar:
            _, found, name = member.name.partition(FOLDER + "/")
            if found and name and "/" not in name and member.isfile():
                data = tar.extractfile(member)
                assert data is not None
                (into / name).write_bytes(data.read())
    if not (into / "test_profiler.py").is_file():
        raise SystemExit(f"expected {FOLDER}/test_profiler.py in {sources}; it is not there")
    return into


def public_names(python: str) -> Set[str]:
    """The names of torch.profiler that lanescope has."""
    code = "import json, lanescope, torch.profiler as t; print(json.dumps([n for n in t.__all__ + ['DeviceType'] if hasattr(lanescope, n)]))"
    return set(json.loads(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout))


def prepare(sources: Path, folder: Path, names: Optional[Set[str]]) -> None:
    """Copies the tests into `folder`; with `names`, those are lanescope's."""
    folder.mkdir()
    for path in sorted(sources.iterdir()):
        if path.suffix == ".py" and names is not None:
            (folder / path.name).write_text(rewrite(path.read_text(encoding="utf-8"), names), encoding="utf-8")
        elif path.is_file():
            shutil.copy(path, folder / path.name)


def _read(path: Path) -> List[Dict[str, str]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def _watch(command: List[str], folder: Path, results: Path, log: Path) -> str:
    """Runs pytest; ends it when one test takes longer than TEST_LIMIT_S. "": it ended by itself."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LANESCOPE_RECORD")}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE)] + [path for path in [os.environ.get("PYTHONPATH")] if path])
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    with open(log, "ab") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True)
        seen, since = 0, time.monotonic()
        while process.poll() is None:
            time.sleep(0.2)
            size = results.stat().st_size if results.exists() else 0
            if size != seen:
                seen, since = size, time.monotonic()
            elif time.monotonic() - since > TEST_LIMIT_S:
                os.killpg(process.pid, 9)
                process.wait()
                return "timeout"
    return "crashed" if process.returncode < 0 or process.returncode > 1 else ""


def run_file(
    python: str, folder: Path, name: str, results: Path, log: Path, pick: str, tests: Sequence[str] = ()
) -> Dict[str, Result]:
    """Every test of one file, or only ``tests`` of it. One that ends the process is noted, and the rest goes on in a new one."""
    found: Dict[str, Result] = {}
    while True:
        results.unlink(missing_ok=True)
        command = [python, "-m", "pytest", "-q", "-p", "results_plugin", "-p", "no:cacheprovider", "--results", str(results)]
        command += ["-k", pick] if pick else []
        for test in found:
            command += ["--deselect", test]
        ended = _watch(command + (list(tests) or [name]), folder, results, log)
        started = ""
        for line in _read(results):
            started = line["test"]
            if line["event"] == "ended" and (line["test"] not in found or line["outcome"] != "passed"):
                first = line["message"].splitlines()[0] if line["message"] else ""
                found[line["test"]] = Result(line["outcome"], first, line["text"])
        if not ended or not started or started in found:
            return found
        found[started] = Result(ended, f"the process ended in it ({ended})", "")


def run_failed_again(
    python: str, folder: Path, name: str, results: Path, log: Path, pick: str, found: Dict[str, Result]
) -> Dict[str, Result]:
    """``found``, with what passes when it runs a second time. For torch.profiler's half only: lanescope has to pass at once."""
    failed = [test for test, result in found.items() if result.outcome == "failed"]
    again = run_file(python, folder, name, results, log, pick, failed) if failed else {}
    return {**found, **{test: result for test, result in again.items() if result.outcome == "passed"}}


def compare(torch: Dict[str, Result], lanescope: Dict[str, Result]) -> List[Compared]:
    """One row a test, in the order of torch's run."""
    rows = []
    for test, theirs in torch.items():
        ours = lanescope.get(test, Result("missing", "the test did not run", ""))
        reason = ""
        if theirs.outcome == "skipped":
            group, reason = "skipped", theirs.message.removeprefix("Skipped: ")
        elif theirs.outcome != "passed":
            group, reason = "torch", theirs.message
        elif ours.outcome == "passed":
            group = "both"
        else:
            internal = reason_of(test, ours.message + "\n" + ours.text)
            group, reason = ("ours", ours.message) if internal is None else ("internals", internal)
        rows.append(Compared(test, group, theirs, ours, reason))
    return rows


def _cell(text: str) -> str:
    text = text if len(text) <= 160 else text[:157] + "..."
    return text.replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def report(rows: Sequence[Compared], versions: str, source_name: str) -> str:
    """The page docs/measurements/torch_suite.md."""
    count = {group: sum(row.group == group for row in rows) for group in GROUPS}
    lines = [
        "# PyTorch's own profiler tests, run against lanescope",
        "",
        "Made by `tests/torch_suite/run.py`, which says how; do not edit. The tests are not part of this repository.",
        "",
        f"Sources: {source_name}. {versions}.",
        "",
        "A test that fails with torch.profiler runs a second time with it, and passes if it passes then: torch 2.13 sometimes cannot",
        "read the names of its own events (UnicodeDecodeError). With lanescope each test runs once.",
        "",
        "| tests | |",
        "|---:|---|",
    ]
    lines += [f"| {count[group]} | {text} |" for group, text in GROUPS.items()]
    lines.append(f"| {len(rows)} | all |")
    for name, why in sorted(LEFT_OUT.items()):
        lines += ["", f"Left out: `{name}`: {why}."]
    for group, title in GROUPS.items():
        chosen = [row for row in rows if row.group == group]
        if not chosen:
            continue
        lines += ["", f"## {len(chosen)} {title}", ""]
        if group == "both":
            lines += [f"- `{row.test}`" for row in chosen]
            continue
        by_reason: Dict[str, List[Compared]] = {}
        for row in chosen:
            by_reason.setdefault(row.reason, []).append(row)
        for reason, members in by_reason.items():
            lines += [f"{_cell(reason)}:", ""]
            lines += [f"- `{row.test}`{_with_lanescope(row)}" for row in members]
            lines.append("")
        lines.pop()
    return "\n".join(lines) + "\n"


def _with_lanescope(row: Compared) -> str:
    if row.group != "torch":
        return ""
    return {"passed": " (passes with lanescope)", "failed": " (fails with lanescope, too)"}.get(row.lanescope.outcome, "")


def _versions(python: str) -> str:
    code = "import sys, torch, lanescope; print(f'Python {sys.version.split()[0]}, torch {torch.__version__}, CUDA ' + ('available' if torch.cuda.is_available() else 'not available'))"
    out = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    return f"{out}, {platform.system()} {platform.machine()}, {time.strftime('%-d %B %Y')}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=Path, help=f"PyTorch's source tree, its {FOLDER}, or a tar of the tree")
    parser.add_argument("--python", default=sys.executable, help="the interpreter with torch, lanescope, pytest, expecttest")
    parser.add_argument("--write", type=Path, help="write the page (docs/measurements/torch_suite.md)")
    parser.add_argument("--json", type=Path, help="write every result with its whole text")
    parser.add_argument("--torch-results", type=Path, help="a --json of before: torch.profiler's results are taken from it")
    parser.add_argument("--only", default="", help="only files that have this in their name")
    parser.add_argument("-k", dest="pick", default="", help="only tests that pytest -k picks")
    arguments = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torch_suite-") as scratch_name:
        scratch = Path(scratch_name)
        (scratch / "sources").mkdir()
        sources = unpack(arguments.sources, scratch / "sources")
        files = [path.name for path in sorted(sources.glob("test_*.py"))]
        files = [name for name in files if name not in LEFT_OUT and arguments.only in name]
        known: Dict[str, Result] = {}
        if arguments.torch_results:
            known = {row["test"]: Result(*row["torch"]) for row in json.loads(arguments.torch_results.read_text())}
        rows: List[Compared] = []
        prepare(sources, scratch / "torch", None)
        prepare(sources, scratch / "lanescope", public_names(arguments.python))
        for name in files:
            both = []
            for side in ("torch", "lanescope"):
                if side == "torch" and known:
                    both.append({test: result for test, result in known.items() if test.startswith(name + "::")})
                    continue
                results, log = scratch / f"{side}.jsonl", scratch / f"{side}-{name}.log"
                how = (arguments.python, scratch / side, name, results, log, arguments.pick)
                found = run_file(*how)
                both.append(run_failed_again(*how, found) if side == "torch" else found)
                if not both[-1]:
                    print(log.read_text(errors="replace")[-3000:], file=sys.stderr)
                    raise SystemExit(f"expected tests in {name} with {side}; none ran (above: the end of pytest's output)")
            if arguments.pick:
                both[0] = {test: result for test, result in both[0].items() if test in both[1]}
            new = compare(both[0], both[1])
            rows += new
            print(f"{name}: " + ", ".join(f"{sum(r.group == g for r in new)} {g}" for g in GROUPS), flush=True)
    for row in rows:
        if row.group == "ours":
            print(f"FAILS WITH LANESCOPE ONLY  {row.test}\n    {row.reason}")
    print(f"{len(rows)} tests in {time.monotonic() - begin:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps([row._asdict() for row in rows], indent=1))
    if arguments.write:
        arguments.write.write_text(report(rows, _versions(arguments.python), arguments.sources.name), encoding="utf-8")
    return 1 if any(row.group == "ours" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
