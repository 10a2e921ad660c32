"""What a collective was: the fields that torch.profiler writes on record_param_comms, the same names and values.

gloo opens no such ranges, NCCL needs GPUs; a small library opens them with the macros that NCCL's process group uses.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import subprocess
import sys
import textwrap
from typing import Any, Callable, Dict, List

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
lanescope = pytest.importorskip("lanescope", reason="needs the lanescope package (PYTHONPATH)")

import both_profilers as side  # noqa: E402
from lanescope import _observer_build  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
OWN_KEYS = ("External id", "Record function id", "Ev Idx")  # each profiler counts by itself


@pytest.fixture(scope="module", autouse=True)
def observer() -> None:
    from lanescope import _torch

    reason = _torch.ensure_observer()
    if reason:
        pytest.skip(f"needs the torch observer, which cannot be built here: {reason}")


@pytest.fixture(scope="module")
def collectives(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    found = _observer_build.find_torch()
    library = tmp_path_factory.mktemp("collectives") / "libcollectives.so"
    command = [*_observer_build.find_compiler(), "-std=c++20", "-O0", "-fPIC", "-shared", "-w",
               f"-D_GLIBCXX_USE_CXX11_ABI={found.cxx11_abi}"]
    for directory in found.include_dirs:
        command += ["-isystem", directory]
    command += [str(HERE / "collectives.cpp"), "-o", str(library), f"-L{found.directory}/lib", "-ltorch_cpu", "-lc10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    loaded = ctypes.CDLL(str(library))
    loaded.all_reduce.argtypes = [ctypes.c_int64, ctypes.c_int64]
    loaded.all_to_all.argtypes = [ctypes.c_int64]
    loaded.number_among_the_inputs.argtypes = [ctypes.c_int64]
    loaded.send.argtypes = [ctypes.c_int64, ctypes.c_int]
    return loaded


def fields(trace: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Of each record_param_comms in the order of time, what it was."""
    found = [event for event in trace["traceEvents"] if event.get("name") == "record_param_comms"]
    found.sort(key=lambda event: side.nanoseconds(event["ts"]))
    return [{key: value for key, value in event["args"].items() if key not in OWN_KEYS} for event in found]


def both(program: Callable[[], Any], folder: pathlib.Path, **options: Any) -> List[Dict[str, Any]]:
    theirs = fields(side.under_torch(program, folder, **options))
    ours = fields(side.under_lanescope(program, folder, **options))
    assert ours == theirs
    return ours


@pytest.mark.parametrize("shapes", [False, True], ids=["plain", "shapes"])
def test_fields_are_those_of_torch_profiler(tmp_path: pathlib.Path, collectives: ctypes.CDLL, shapes: bool) -> None:
    def program() -> None:
        collectives.all_reduce(7, 8)
        collectives.all_to_all(8)
        collectives.send(9, 3)

    reduce, exchange, send = both(program, tmp_path, record_shapes=shapes)
    assert (reduce["Collective name"], reduce["In msg nelems"]) == ("allreduce", 8)
    assert (reduce["dtype"], reduce["Group size"]) == ("Float", 2)
    assert (reduce["Process Group Name"], reduce["Process Group Description"]) == ("0", "default_pg")
    assert exchange["In split size"] == "[60, 40]" and exchange["Out split size"].endswith(", ..., 3]")
    assert send["Collective name"] == "send"
    if "Seq" in reduce:  # newer torch
        assert [call["Seq"] for call in (reduce, exchange, send)] == [7, 8, 9]
    assert ("Input Dims" in reduce) is shapes


def test_a_range_without_information_is_recorded_without(tmp_path: pathlib.Path, collectives: ctypes.CDLL) -> None:
    # torch.profiler 2.13 ends the process here (it reads what it did not find), so there is nothing to compare with.
    assert fields(side.under_lanescope(collectives.nothing_known, tmp_path)) == [{}]


def test_the_number_may_be_an_input(tmp_path: pathlib.Path, collectives: ctypes.CDLL) -> None:
    def program() -> None:
        collectives.number_among_the_inputs(41)
        collectives.number_among_the_inputs(42)

    found = fields(side.under_lanescope(program, tmp_path, record_shapes=True))
    assert [each.get("Seq") for each in found] == [41, 42]


def test_other_options_do_not_matter(tmp_path: pathlib.Path, collectives: ctypes.CDLL) -> None:
    (ours,) = fields(side.under_lanescope(lambda: collectives.all_reduce(1, 4), tmp_path, profile_memory=True))
    assert ours["Collective name"] == "allreduce" and ours["Out msg nelems"] == 4


def test_equal_calls_share_their_fields(tmp_path: pathlib.Path, collectives: ctypes.CDLL) -> None:
    """The recorder keeps each text for good: a thousand calls that differ by their number must not be a thousand texts."""
    calls = 1000
    with lanescope.profile(output_dir=str(tmp_path)) as prof:
        for number in range(calls):
            collectives.all_reduce(number, 4)
    prof.export_chrome_trace(str(tmp_path / "many.json"))
    found = fields(side.load(tmp_path / "many.json"))
    assert len(found) == calls
    if "Seq" in found[0]:
        assert [each.pop("Seq") for each in found] == list(range(calls))
    if "Comms Id" in found[0]:  # of group and number
        assert len({each.pop("Comms Id") for each in found}) == calls
    assert all(each == found[0] for each in found)
    data = pathlib.Path(prof.spool_path).read_bytes()
    assert data.count(b"Process Group Description") < 50  # those of earlier tests are in every file of this process


GLOO = """
    import collections, json, pathlib, sys, torch, torch.distributed as dist
    sys.path.insert(0, {here!r})
    import both_profilers as side
    import test_collectives as me
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    folder = pathlib.Path({folder!r}) / str(rank)
    folder.mkdir()
    x = torch.ones(8)
    def program():
        dist.all_reduce(x)
        dist.all_gather([torch.zeros(8) for _ in range(2)], x)
        dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
        dist.all_reduce(x, async_op=True).wait()
    program()
    theirs = side.under_torch(program, folder, record_shapes=True)
    ours = side.under_lanescope(program, folder, record_shapes=True)
    count = lambda trace: collections.Counter(
        (e["name"], json.dumps(e["args"].get("Input Dims"))) for e in trace["traceEvents"]
        if e.get("cat") in ("cpu_op", "user_annotation"))
    assert count(ours) == count(theirs), (count(ours), count(theirs))
    assert me.fields(ours) == me.fields(theirs)
    mine, other = ours["distributedInfo"], theirs["distributedInfo"]
    assert mine.pop("local_rank") == rank
    assert mine == other, (mine, other)
    names = {{name for name, _ in count(ours)}}
    assert {{"c10d::allreduce_", "gloo:all_reduce", "c10d::send" if rank == 0 else "c10d::recv_"}} <= names, names
    dist.destroy_process_group()
"""


def test_two_gloo_ranks(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "gloo.py"
    script.write_text(textwrap.dedent(GLOO).format(here=str(HERE), folder=str(tmp_path)))
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads((tmp_path / "1" / "lanescope.json").read_text())["distributedInfo"]["rank"] == 1
