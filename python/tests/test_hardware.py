"""Hardware lanes: the process that samples, as the package starts and ends it. The sampling itself: tests/fake_gpu."""

from __future__ import annotations

import os
import pathlib
import stat
import struct
import sys
import time

import pytest

from lanescope import _hardware, _shared_hardware
from lanescope.record import environment


@pytest.mark.parametrize(
    "text, ns", [(True, 100_000), ("100us", 100_000), ("50us", 50_000), ("1.5ms", 1_500_000), ("100ms", 100_000_000)]
)
def test_intervals_are_read(text: "str | bool", ns: int) -> None:
    assert _hardware.parse_interval(text) == ns


@pytest.mark.parametrize("text", ["49us", "101ms", "1s", "", "100", "x", "-1ms"])
def test_other_intervals_say_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="from 50us to 100ms"):
        _hardware.parse_interval(text)


def test_the_flag_becomes_a_variable() -> None:
    assert environment("out", hardware="1ms", base={})["LANESCOPE_RECORD_HARDWARE"] == "1ms"
    assert "LANESCOPE_RECORD_HARDWARE" not in environment("out", base={})
    with pytest.raises(ValueError, match="--hardware: expected an interval"):
        environment("out", hardware="1s", base={})
    with pytest.raises(ValueError, match="exclude each other"):
        environment("out", hardware="1ms", last="10s", base={})


def test_a_rank_samples_its_own_gpu() -> None:
    assert _hardware.devices_of({"LOCAL_RANK": "3"}) == "3"
    assert _hardware.devices_of({}) == ""


def script(tmp_path: pathlib.Path, lines: str) -> str:
    path = tmp_path / "sampler"
    path.write_text("#!/bin/sh\n" + lines)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_process_writes_until_it_is_stopped(tmp_path: pathlib.Path) -> None:
    # As the real one: it says that it is ready, and ends when its input says something.
    command = script(tmp_path, 'echo "$@" >"$2"\necho ready\nread line\necho "$line" >>"$2"\n')
    sampler = _hardware.HardwareSampler(100_000, 1000)
    out = tmp_path / "out.counters"
    sampler.start(str(out), command)
    sampler.wait()
    assert sampler.problem == ""
    sampler.stop()
    assert out.read_text() == f"_hardware {out} 100000  1000\nstop\n"
    sampler.stop()  # again: nothing happens


@pytest.mark.parametrize(
    "lines, problem",
    [
        ("echo 'none: no GPU here'\nexit 1\n", "no GPU here"),
        ("echo 'ready, without counters: GPU 0: busy'\nread line\n", "GPU 0: busy"),
        ("exit 3\n", "the process that samples ended at once"),
    ],
)
def test_what_is_missing_is_said(tmp_path: pathlib.Path, lines: str, problem: str) -> None:
    sampler = _hardware.HardwareSampler(100_000, 1000)
    sampler.start(str(tmp_path / "out"), script(tmp_path, lines))
    sampler.wait()
    assert sampler.problem == problem
    sampler.stop()


def test_a_command_that_does_not_start_is_named(tmp_path: pathlib.Path) -> None:
    sampler = _hardware.HardwareSampler(100_000, 1000)
    sampler.start(str(tmp_path / "out"), str(tmp_path / "missing"))
    sampler.wait()
    assert "missing could not be started" in sampler.problem


def test_the_file_moves_next_to_its_recording(tmp_path: pathlib.Path) -> None:
    path = _hardware.own_path(str(tmp_path))
    pathlib.Path(path).write_text("samples")
    recording = str(tmp_path / "a.lspool")
    assert _hardware.give_name(path, recording) == ""
    assert pathlib.Path(recording + ".counters").read_text() == "samples"
    assert not os.path.exists(path)
    assert "cannot be moved next to the recording" in _hardware.give_name(path, recording)


# -- ranks that share one process ----------------------------------------------------------------------------------------

HEAD = b"LSCOUNT1" + bytes(8)
BLOCK = struct.pack("<IHHII", 0x4B4C4248, 5, 0, 40, 0) + bytes(40)

# As the real one: a file for each GPU, until nobody holds the FIFO; then the folder goes.
SHARED = """
import os, sys
folder = sys.argv[2]
with open(os.path.join(os.path.dirname(folder.rstrip("/")), "starts"), "a") as log:
    log.write(" ".join(sys.argv[4:5]) + "\\n")
for number in sys.argv[4].split(","):
    with open(folder + number + ".counters", "wb") as file:
        file.write({head!r} + {block!r} + {block!r} + b"half a block")
print({said!r}, flush=True)
os.set_blocking(0, True)
while os.read(0, 100):
    pass
for name in os.listdir(folder):
    os.unlink(folder + name)
os.rmdir(folder)
"""


def shared(tmp_path: pathlib.Path, rank: int, said: str = "ready") -> _shared_hardware.SharedSampler:
    program = tmp_path / "sampler.py"
    program.write_text(SHARED.format(head=HEAD, block=BLOCK, said=said))
    command = script(tmp_path, f"exec {sys.executable} {program} \"$@\"\n")
    environ = {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"}
    assert _shared_hardware.is_shared(environ)
    sampler = _shared_hardware.SharedSampler(100_000, 1000, str(tmp_path), environ)
    sampler.start(command)
    return sampler


def test_ranks_of_a_host_share_one_process(tmp_path: pathlib.Path) -> None:
    first, second = shared(tmp_path, 0), shared(tmp_path, 1)
    assert first.problem == second.problem == ""
    assert (tmp_path / "starts").read_text() == "0,1\n"  # one process for both GPUs
    for number, sampler in enumerate((first, second)):
        assert os.path.basename(sampler.path()) == f"{number}.counters"
        assert sampler.give_name(sampler.path(), str(tmp_path / f"rank{number}.lspool")) == ""
    folder = os.path.dirname(first.path())
    before = time.monotonic()
    first.stop()  # the other one goes on: what there is up to now is kept, without the half block
    assert time.monotonic() - before >= 2
    assert (tmp_path / "rank0.lspool.counters").read_bytes() == HEAD + BLOCK + BLOCK
    assert os.path.exists(folder)
    second.stop()
    assert not os.path.exists(folder) and second.problem == ""
    assert (tmp_path / "rank1.lspool.counters").read_bytes() == HEAD + BLOCK + BLOCK + b"half a block"
    third = shared(tmp_path, 0)  # the next recording of the same ranks
    assert third.problem == "" and (tmp_path / "starts").read_text() == "0,1\n" * 2
    third.stop()


def test_a_forked_child_does_not_hold_the_shared_process(tmp_path: pathlib.Path) -> None:
    sampler = shared(tmp_path, 0)
    folder = os.path.dirname(sampler.path())
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    try:
        sampler.stop()
        assert not os.path.exists(folder)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_every_rank_says_what_the_shared_process_lacks(tmp_path: pathlib.Path) -> None:
    first, second = shared(tmp_path, 0, "ready, without counters: GPU 0: busy"), shared(tmp_path, 1)
    assert first.problem == second.problem == "GPU 0: busy"
    second.stop()
    first.stop()
    assert first.path() == ""


def test_a_shared_process_that_finds_nothing_leaves_no_file(tmp_path: pathlib.Path) -> None:
    sampler = shared(tmp_path, 0, "none: no GPU here")
    assert sampler.problem == "no GPU here" and sampler.path() == ""
    assert [path.name for path in tmp_path.glob(".lanescope*")]
    sampler.stop()
    assert not list(tmp_path.glob(".lanescope*"))


def test_single_ranks_sample_alone() -> None:
    assert not _shared_hardware.is_shared({"LOCAL_RANK": "0"})
    assert not _shared_hardware.is_shared({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"})


def test_ranks_meet_only_with_the_same_gpus_and_interval(tmp_path: pathlib.Path) -> None:
    def place(interval: int, **environ: str) -> str:
        return _shared_hardware.meeting_place(str(tmp_path), interval, environ)

    assert place(1) == place(1) != place(2)
    assert place(1, CUDA_VISIBLE_DEVICES="0") != place(1, CUDA_VISIBLE_DEVICES="1")
