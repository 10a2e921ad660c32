"""Shared by the tests that run other projects' code: each program runs once with torch.profiler and once with lanescope."""

from __future__ import annotations

import collections
import gzip
import importlib
import json
import pathlib
from typing import Any, Callable, Dict

import pytest

import lanescope

torch = pytest.importorskip("torch", reason="needs torch")
import torch.profiler as torch_profiler  # noqa: E402

HOW = "run ./check --frameworks, or pip install -r tests/frameworks/requirements.txt next to torch"


def need(module: str) -> Any:
    """The module, or a skip that says loudly what is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        pytest.skip(f"needs {module}: {error}; {HOW}", allow_module_level=True)


@pytest.fixture(scope="session", autouse=True)
def observer() -> None:
    from lanescope import _torch

    reason = _torch.ensure_observer()
    if reason:
        pytest.skip(f"needs the torch observer: {reason}")


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    torch.manual_seed(0)


def counts(prof: Any, **arguments: Any) -> Dict[str, int]:
    """How often each operator and range was called, by name; without torch.profiler's own start and stop."""
    return {row.key: row.count for row in prof.key_averages(**arguments) if not row.key.startswith("cuda")}


def shapes(prof: Any) -> Dict[tuple, int]:
    found: Dict[tuple, int] = collections.Counter()
    for row in prof.key_averages(group_by_input_shape=True):
        found[row.key, str(row.input_shapes)] += row.count
    return dict(found)


def read_json(path: Any) -> Dict[str, Any]:
    path = pathlib.Path(path)
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as file:
        return json.load(file)


def file_counts(path: Any) -> Dict[tuple, int]:
    """Of a written trace: how many events of each category and name, for what both profilers write of a CPU program."""
    found: Dict[tuple, int] = collections.Counter()
    for event in read_json(path)["traceEvents"]:
        if event.get("cat") in ("cpu_op", "user_annotation"):
            found[event["cat"], event["name"]] += 1
    return dict(found)


def with_both(program: Callable[..., Any], *arguments: Any) -> tuple:
    """What the program gives with torch.profiler and with lanescope. It gets the module with profile, schedule and so on."""
    program(torch_profiler, *arguments)  # what happens only once in a process
    torch.manual_seed(0)
    theirs = program(torch_profiler, *arguments)
    torch.manual_seed(0)
    return theirs, program(lanescope, *arguments)


@pytest.fixture
def lanescope_as_torch_profiler(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets code that we cannot change use lanescope: replaces torch.profiler's names."""

    def replace() -> None:
        for name in ("profile", "schedule", "tensorboard_trace_handler", "record_function"):
            monkeypatch.setattr(torch_profiler, name, getattr(lanescope, name))

    return replace
