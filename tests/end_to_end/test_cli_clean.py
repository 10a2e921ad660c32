"""`lanescope clean` and where `lanescope recover` writes: what is removed or written, and what is left alone."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
from typing import List

import pytest

from conftest import clean_environment
from test_cli_native_recording import built

HOST = re.sub("[^A-Za-z0-9]", "-", socket.gethostname()[:40].split(".")[0])
PID_AT = 32  # of spool::FileHeader


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> bytes:
    """A recording whose process was killed."""
    folder = tmp_path_factory.mktemp("killed")
    env = clean_environment({"LANESCOPE_RECORD_NATIVE": "1", "LANESCOPE_RECORD_DIR": str(folder),
                             "LANESCOPE_RECORD_ACTIVITIES": "cpu"})
    subprocess.run([built("native_recording_program"), "start", "work=2", f"signal={int(signal.SIGKILL)}"], env=env,
                   capture_output=True, check=False, timeout=60)
    (spool,) = folder.iterdir()
    return spool.read_bytes()


@pytest.fixture(scope="module")
def ended() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def owned(spool: bytes, pid: int, host: str = socket.gethostname()) -> bytes:
    at = spool.index(socket.gethostname()[:63].encode())
    name = host.encode()[:63]
    whole = spool[:at] + name + b"\0" * (64 - len(name)) + spool[at + 64 :]
    return whole[:PID_AT] + pid.to_bytes(8, "little") + whole[PID_AT + 8 :]


def name(pid: int, host: str = HOST, program: str = "train") -> str:
    return f"{program}_20250101T000000Z_{host}_{pid}"


def listed(text: str) -> List[str]:
    return [pathlib.Path(line.split("  (")[0].split()[-1]).name for line in text.splitlines() if "  (" in line and "stays" not in line]


def test_leftovers_of_ended_processes_are_listed_and_with_yes_removed(run, tmp_path, killed, ended):
    folder = tmp_path / "traces"
    folder.mkdir()
    leftovers = {
        f"{name(ended)}.json.partial-{ended}": b"{" * 5000,
        f"{name(ended)}_dump1.lspool.part": killed,
        f"{name(ended)}.lspool.read{ended}": owned(killed, ended),
        f"{name(ended, program='lanescope_temporary')}.lspool": owned(killed, ended),
        f"{name(ended)}.lspool": owned(killed, ended),  # there is a trace of it
    }
    kept = {
        f"{name(ended)}.json": b"{}",
        f"{name(ended)}.txt": b"table",
        f"{name(ended)}_2.lspool": owned(killed, ended),  # there is none of this one
        f"{name(ended, 'node9')}.json.partial-{ended}": b"{",
        f"{name(ended, 'node9')}.lspool.read{ended}": owned(killed, ended, "node9"),
        f"mine.json.partial-{ended}": b"{",  # does not say of which machine
        f"{name(os.getpid())}.json.partial-{os.getpid()}": b"{",
        "notes.lspool": b"not a recording",
        f"notes.partial-{ended}": b"not ours",
        "film.part": b"not ours",
    }
    for file, content in {**leftovers, **kept}.items():
        (folder / file).write_bytes(content)
    (folder / "inner").mkdir()
    (folder / "inner" / f"{name(ended)}.json.partial-{ended}").write_bytes(b"{")
    (folder / f"{name(ended)}_3.json.partial-{ended}").symlink_to(folder / "film.part")
    before = sorted(os.listdir(folder))

    ran = run("clean", folder)
    assert (ran.code, ran.err) == (0, "")
    assert listed(ran.out) == sorted(leftovers)
    assert re.search(r"^5 files, \S+ (?:[KMG]i)?B; nothing was removed\. Add --yes to remove them$", ran.out, re.M), ran.out
    stays = {pathlib.Path(line.split()[1]).name: line for line in ran.out.splitlines() if line.startswith("stays: ")}
    assert set(stays) == {file for file in kept if "partial" in file or "read" in file or file.endswith("_2.lspool")} - {f"notes.partial-{ended}"}
    assert "holds what a killed process recorded" in stays[f"{name(ended)}_2.lspool"]
    assert "machine node9" in stays[f"{name(ended, 'node9')}.json.partial-{ended}"]
    assert f"process {os.getpid()} lives" in stays[f"{name(os.getpid())}.json.partial-{os.getpid()}"]
    assert sorted(os.listdir(folder)) == before

    ran = run("clean", folder, "--yes", "--json")
    found = json.loads(ran.out)
    assert found["removed_count"] == found["leftover_count"] == 5
    assert found["removed_bytes"] == sum(file["bytes"] for file in found["files"] if file["removed"]) > 0
    assert sorted(pathlib.Path(file["path"]).name for file in found["files"] if file["removed"]) == sorted(leftovers)
    assert sorted(os.listdir(folder)) == sorted(set(before) - set(leftovers))
    assert run("clean", folder, "--yes").out.endswith(f"nothing to remove in '{folder}'\n")

    ran = run("clean", folder, "--yes", "--recordings", "--any-host")
    gone = {file for file in kept if "node9" in file} | {f"{name(ended)}_2.lspool", f"mine.json.partial-{ended}"}
    assert listed(ran.out) == sorted(gone) and "removed 4 files" in ran.out
    assert sorted(os.listdir(folder)) == sorted(set(before) - set(leftovers) - gone)
    assert (folder / "inner" / f"{name(ended)}.json.partial-{ended}").exists()


def test_hardware_counters_go_and_stay_with_their_recording(run, tmp_path, killed, ended):
    def counters(pid: int, host: str = HOST) -> str:
        return f"{name(pid, host)}.lspool.counters"

    lone, other, alive = counters(ended), counters(ended, "node9"), counters(os.getpid())
    with_recording = f"{name(ended, program='kept')}.lspool"
    of_temporary = f"{name(ended, program='lanescope_temporary')}.lspool"
    for file in (with_recording, of_temporary):
        (tmp_path / file).write_bytes(owned(killed, ended))
    for file in (lone, other, alive, f"{with_recording}.counters", f"{of_temporary}.counters", "mine.lspool.counters"):
        (tmp_path / file).write_bytes(b"LSCOUNT1" + b"\0" * 5000)
    ran = run("clean", tmp_path, "--yes")
    assert (ran.code, ran.err) == (0, "")
    assert listed(ran.out) == sorted([lone, of_temporary, f"{of_temporary}.counters"])
    assert "hardware counters without their recording" in ran.out and "hardware counters of a temporary recording" in ran.out
    left = [other, alive, with_recording, f"{with_recording}.counters", "mine.lspool.counters"]
    assert sorted(os.listdir(tmp_path)) == sorted(left)
    run("clean", tmp_path, "--yes", "--recordings")
    assert sorted(os.listdir(tmp_path)) == sorted([other, alive, "mine.lspool.counters"])


def test_a_file_that_a_process_holds_open_to_write_stays_whatever_is_asked_for(run, tmp_path, killed, ended):
    path = tmp_path / f"{name(ended, program='lanescope_temporary')}.lspool"
    path.write_bytes(owned(killed, ended))  # as in another container: that process id says nothing here
    flags = ("--yes", "--recordings", "--any-host")
    with open(path, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = run("clean", tmp_path, *flags)
        assert "a process is writing it" in ran.out and path.exists()
    assert "removed 1 file," in run("clean", tmp_path, *flags).out and not path.exists()


def test_a_finished_recording_is_a_result(run, tmp_path):
    env = clean_environment({"LANESCOPE_RECORD_NATIVE": "1", "LANESCOPE_RECORD_DIR": str(tmp_path / "out"),
                             "LANESCOPE_RECORD_ACTIVITIES": "cpu"})
    subprocess.run([built("native_recording_program"), "start", "work=2"], env=env, capture_output=True, check=True, timeout=60)
    (spool,) = (tmp_path / "out").iterdir()
    ran = run("clean", tmp_path / "out", "--yes", "--recordings", "--any-host")
    assert ran.code == 0 and "nothing to remove" in ran.out and spool.exists()


def test_clean_needs_a_folder(run, tmp_path):
    (tmp_path / "file").touch()
    for folder in ("missing", "file"):
        ran = run("clean", tmp_path / folder)
        assert ran.code == 2 and "clean: expected a folder that can be listed" in ran.complaint()


# --- recover ----------------------------------------------------------------------------------------------------------


def test_recover_writes_next_to_recordings_in_subfolders_only_when_asked(run, tmp_path, killed):
    top = tmp_path / "top"
    for folder in ("a", "b", "b/deeper"):
        (top / folder).mkdir(parents=True)
        (top / folder / "one.lspool").write_bytes(killed)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "one.lspool").write_bytes(killed)
    (top / "link").symlink_to(elsewhere)

    ran = run("recover", top)
    assert ran.code == 2 and ran.out == ""
    assert f"2 recordings in folders of '{top}' are left alone: '{top}/a', '{top}/b'; name the folder" in ran.complaint()
    assert not list(tmp_path.rglob("*.json"))

    (top / "here.lspool").write_bytes(killed)
    ran = run("recover", top)
    assert ran.code == 0 and "are left alone" in ran.err
    assert list(tmp_path.rglob("*.json")) == [top / "here.json"]

    ran = run("recover", top, "--yes", "--force")
    assert ran.code == 0, ran.err
    assert sorted(tmp_path.rglob("*.json")) == [top / "a" / "one.json", top / "b" / "one.json", top / "here.json"]


def test_recover_enters_no_other_file_system(run, tmp_path, killed):
    """`recover /` must not write into /proc, /dev/shm or a disk of other people."""
    shm = pathlib.Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == pathlib.Path("/dev").stat().st_dev or not os.access(shm, os.W_OK):
        pytest.skip("needs a second file system: /dev/shm is none, or cannot be written")
    spool = shm / f"lanescope_test_{os.getpid()}.lspool"
    spool.write_bytes(killed)
    try:
        ran = run("recover", "/dev", "-o", tmp_path)
        assert ran.code == 1 and "found none" in ran.err
    finally:
        spool.unlink()
    assert not list(tmp_path.glob("lanescope_test_*"))


def test_a_conversion_keeps_none_of_the_descriptors_that_it_inherits(binary, tmp_path):
    """What the program got from its parent, such as a lock, ends with the program and not with the conversion."""
    data = pathlib.Path(__file__).parent.parent / "data" / "spools" / "layout3_ring.lspool.gz"
    (tmp_path / "a.lspool").write_bytes(gzip.decompress(data.read_bytes()))
    inherited_end, inherited = os.pipe()
    full_end, full = os.pipe()
    fcntl.fcntl(full, fcntl.F_SETPIPE_SZ, 4096)
    try:
        # Nobody reads its output, so it cannot end before we look.
        process = subprocess.Popen([binary, "recover", "a.lspool", "--out", "-", "--background"], cwd=tmp_path, stdout=full,
                                   pass_fds=[inherited], env=clean_environment())
        os.close(inherited)
        ready, _, _ = select.select([inherited_end], [], [], 60)
        assert ready and os.read(inherited_end, 1) == b"", "the conversion has it open"
        assert process.poll() is None
    finally:
        os.close(full)
        os.close(full_end)  # it fails to write, and ends
        os.close(inherited_end)
    process.wait(60)
