"""Tables of torch 2.11 recordings with Python stacks: torch's own text, from the file alone (tests/data/h200_stacks)."""
from __future__ import annotations

import gzip
import pathlib
import subprocess

import pytest

from conftest import find_binary

DATA = pathlib.Path(__file__).parent.parent / "data" / "h200_stacks"
GROUPS = {
    "plain": [],
    "stack1": ["--group-by-stack", "1"],
    "stack5": ["--group-by-stack", "5"],
    "all": ["--group-by-stack", "3", "--group-by-input-shape", "--group-by-overload-name"],
}
TABLES = sorted(DATA.glob("*.txt.gz"))


def table(trace: pathlib.Path, *flags: str) -> str:
    done = subprocess.run([str(find_binary()), "table", str(trace), "--style", "torch", "--sort-by", "cpu_time_total",
                           "--row-limit", "-1", *flags], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8")


def test_the_tables_are_there() -> None:
    assert len(TABLES) == 8


@pytest.mark.parametrize("path", TABLES, ids=[path.name[: -len(".txt.gz")] for path in TABLES])
def test_the_text_is_torchs_own(path: pathlib.Path) -> None:
    name, group, _, _ = path.name.split(".")
    theirs = gzip.decompress(path.read_bytes()).decode("utf-8")
    ours = table(DATA / f"{name}.json.gz", *GROUPS[group])
    wrong = [(a, b) for a, b in zip(ours.splitlines(), theirs.splitlines()) if a != b]
    assert ours == theirs, wrong[:4]


def test_python_frames_are_no_rows_of_this_torch() -> None:
    text = table(DATA / "threads.json.gz")
    assert "g.py(" not in text and "aten::mm" in text
