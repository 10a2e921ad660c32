"""The sets of examples/fault_sets: every program parses, the READMEs name and count it, and what explain should say of it is written down."""

from __future__ import annotations

import ast
import importlib.util
import pathlib
import re
import sys
from typing import Any, Dict

import pytest

from conftest import SOURCE

SETS = SOURCE / "examples" / "fault_sets"
# unknown_faults has another form: one file programs.py.
FOLDERS = sorted(path.parent for path in SETS.glob("*/programs") if path.is_dir())


def programs(folder: pathlib.Path) -> Dict[str, str]:
    """Name of each program and what it is: pair or trap."""
    found: Dict[str, str] = {}
    for path in sorted((folder / "programs").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
            if isinstance(node, ast.FunctionDef):
                marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)} & {"pair", "trap"}
                if marks:
                    assert node.name not in found and ast.get_docstring(node), node.name
                    found[node.name] = marks.pop()
    return found


def expectations(folder: pathlib.Path) -> Dict[str, Any]:
    spec = importlib.util.spec_from_file_location(f"{folder.name}_expectations", folder / "expectations.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as monkey:
        monkey.setitem(sys.modules, spec.name, module)  # dataclasses look there
        spec.loader.exec_module(module)
    return module.EXPECTED


def says_what_counts(expected: Dict[str, Any]) -> bool:
    """Younger sets say what counts as told, and their READMEs have a table of the programs."""
    return any(entry.told for entry in expected.values())


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request) -> pathlib.Path:
    return request.param


def test_there_are_sets():
    assert {"strangers_faults", "field_faults", "clinic_faults", "workshop_faults"} <= {folder.name for folder in FOLDERS}


def test_the_table_of_sets_counts_pairs_and_traps(folder):
    kinds = list(programs(folder).values())
    table = (SETS / "README.md").read_text(encoding="utf-8")
    assert f"| `{folder.name}` | {kinds.count('pair')}, {kinds.count('trap')} |" in table


def test_each_program_has_its_expectation_and_no_other(folder):
    known, expected = programs(folder), expectations(folder)
    assert set(known) == set(expected)
    told_apart = says_what_counts(expected)
    for name, entry in expected.items():
        for pattern in (entry.cause, entry.owner, entry.fix, entry.forbidden):
            re.compile(pattern)
        assert entry.mechanism, name
        if told_apart:
            assert entry.gain, name
        if told_apart and known[name] == "pair":
            assert entry.remedy and entry.told and entry.partly, name


def test_the_readme_of_a_set_names_each_program(folder):
    if not says_what_counts(expectations(folder)):
        pytest.skip("this README has no table of the programs")
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert [name for name in programs(folder) if f"`{name}`" not in readme] == []


def test_no_program_has_the_name_of_another_set():
    names = [name for folder in FOLDERS for name in programs(folder)]
    assert sorted(names) == sorted(set(names))
