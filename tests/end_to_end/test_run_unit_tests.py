"""tools/run_unit_tests.py, which runs the unit tests of ./check: what it calls passed, failed and unsteady."""

import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
# As a program of GoogleTest: `leaks` makes it end badly after its tests, `once` fails in the first process only, `crashes` ends it.
PROGRAM = """#!{python}
import pathlib, sys
here = pathlib.Path(__file__).parent
names = next(word for word in sys.argv if word.startswith("--gtest_filter="))[15:].split(":")
with open(here / "started", "a") as log:
    print(*names, file=log)
code = 0
for name in names:
    print("[ RUN      ]", name, flush=True)
    state = "OK"
    if name == "T.crashes":
        sys.exit(3)
    if name == "T.fails" or name == "T.once" and not (here / "again").exists():
        name == "T.once" and (here / "again").touch()
        print("expected 1, found 2")
        state, code = "FAILED", 1
    if name == "T.skipped":
        print("a_test.cpp:7: Skipped\\nneeds a disk")
        state = "SKIPPED"
    print(f"[  {{state:>6}}  ] {{name}} (5 ms)" if state != "OK" else f"[       OK ] {{name}} (5 ms)")
sys.exit(3 if "T.leaks" in names and len(names) > 1 else code)
"""


def run(folder, *names, flags=()):
    """Runs tests of a program of a library: states by test, what was printed, how often the program was started."""
    program = folder / "build" / "src" / "a_test"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    (folder / "build" / "CTestTestfile.cmake").write_text("".join(
        f'add_test(a.{name} "{program}" "--gtest_filter={name}")\n'
        f'set_tests_properties(a.{name} PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED")\n' for name in names))
    done = subprocess.run(
        [sys.executable, ROOT / "tools/run_unit_tests.py", "--build", folder / "build", "--junit", folder / "out.xml", *flags],
        capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")})
    assert (folder / "out.xml").exists(), done.stderr
    states = {}
    for case in ElementTree.parse(folder / "out.xml").getroot():
        states[case.get("name")] = case[0].tag if len(case) else "passed"
    assert done.returncode == ("failure" in states.values())
    return states, done.stdout, len((program.parent / "started").read_text().splitlines())


def test_tests_of_a_library_share_a_process(tmp_path):
    states, printed, starts = run(tmp_path, "T.one", "T.two", "T.skipped")
    assert states == {"a.T.one": "passed", "a.T.two": "passed", "a.T.skipped": "skipped"}
    assert starts == 1 and "***Failed" not in printed


def test_what_fails_twice_fails_and_what_then_passes_is_named(tmp_path):
    states, printed, starts = run(tmp_path, "T.one", "T.fails", "T.once")
    assert states == {"a.T.one": "passed", "a.T.fails": "failure", "a.T.once": "passed"}
    assert ": a.T.once .***Failed" in printed and "expected 1, found 2" in printed
    assert starts == 3


def test_a_crash_fails_its_test_and_the_others_still_run(tmp_path):
    states, printed, starts = run(tmp_path, "T.one", "T.crashes", "T.two")
    assert states == {"a.T.one": "passed", "a.T.crashes": "failure", "a.T.two": "passed"}
    assert starts == 3


def test_a_leak_that_only_the_shared_process_has_is_a_failure(tmp_path):
    states, printed, starts = run(tmp_path, "T.one", "T.leaks")
    assert list(states.values()) == ["passed", "failure"]
    assert "ended badly" in printed and starts == 3


def test_what_passed_is_known_until_its_program_changes(tmp_path):
    assert run(tmp_path, "T.one", "T.two", flags=["--remember"])[2] == 1
    states, printed, starts = run(tmp_path, "T.one", "T.two", flags=["--remember"])
    assert starts == 1 and set(states.values()) == {"passed"} and "2 known to pass" in printed
    assert run(tmp_path, "T.one", "T.two", "T.fails", flags=["--remember"])[0]["a.T.fails"] == "failure"
    starts = run(tmp_path, "T.one", "T.two", "T.fails", flags=["--remember"])[2]  # what failed is not known
    assert starts == 1 + 2 + 2
