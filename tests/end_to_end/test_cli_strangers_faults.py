"""examples/fault_sets/strangers_faults: every program parses, is in the README's table, and has what explain should say of it written down."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from typing import Any, Dict

import pytest

from conftest import SOURCE

FOLDER = SOURCE / "examples" / "fault_sets" / "strangers_faults"


def programs() -> Dict[str, str]:
    """Name of each program and what it is: pair or trap."""
    found: Dict[str, str] = {}
    for path in sorted((FOLDER / "programs").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
            if isinstance(node, ast.FunctionDef):
                marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)} & {"pair", "trap"}
                if marks:
                    assert node.name not in found and ast.get_docstring(node), node.name
                    found[node.name] = marks.pop()
    return found


@pytest.fixture(scope="module")
def expected() -> Dict[str, Any]:
    spec = importlib.util.spec_from_file_location("strangers_expectations", FOLDER / "expectations.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkey = pytest.MonkeyPatch()
    monkey.setitem(sys.modules, spec.name, module)  # dataclasses look there
    spec.loader.exec_module(module)
    monkey.undo()
    return module.EXPECTED


def test_there_are_twenty_pairs_and_four_traps():
    kinds = list(programs().values())
    assert (kinds.count("pair"), kinds.count("trap")) == (20, 4)


def test_each_program_has_its_expectation_and_no_other(expected):
    assert set(programs()) == set(expected)
    for name, entry in expected.items():
        for pattern in (entry.cause, entry.owner, entry.fix, entry.forbidden):
            re.compile(pattern)
        assert entry.mechanism and entry.gain, name
        if programs()[name] == "pair":
            assert entry.remedy and entry.told and entry.partly, name


def test_the_readme_names_each_program():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in readme for name in programs())
