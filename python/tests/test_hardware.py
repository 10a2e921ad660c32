"""Hardware lanes: the process that samples, as the package starts and ends it. The sampling itself: tests/fake_gpu."""

from __future__ import annotations

import os
import pathlib
import stat

import pytest

from lanescope import _hardware
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
