"""What a program and its recording's file do to each other: sizes, a cut file, a deleted one, and other fault handlers."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import lanescope
from lanescope import record
from lanescope._sizes import parse_size


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], capture_output=True, text=True, timeout=300
    )


def test_sizes_are_read_as_people_type_them():
    sizes = {"500M": 500_000_000, "2G": 2_000_000_000, "4GiB": 4 << 30, "100000000": 100_000_000, 7: 7, "0": 0}
    assert {text: parse_size(text) for text in sizes} == sizes
    for wrong in ("", "1 G", "-1", -1, 1.5, True, "1X", 1 << 63):
        with pytest.raises(ValueError, match="such as 500M, 2G or 4GiB"):
            parse_size(wrong)
    with pytest.raises(ValueError, match="1MiB or more"):
        lanescope.profile(max_size="1000")
    with pytest.raises(ValueError, match="expected a size"):
        lanescope.profile(disk_reserve="much")


def test_the_command_hands_sizes_on():
    env = record.environment("out", max_size="500M", disk_reserve="10G", base={})
    assert env["LANESCOPE_RECORD_MAX_SIZE"] == "500M" and env["LANESCOPE_RECORD_DISK_RESERVE"] == "10G"
    for wrong in ({"max_size": "1K"}, {"max_size": "x"}, {"disk_reserve": "x"}):
        with pytest.raises(ValueError, match="^--(max-size|disk-reserve): expected a size"):
            record.environment("out", base={}, **wrong)


def test_a_recording_keeps_to_its_size(tmp_path):
    with pytest.warns(UserWarning, match="the size limit of 2000000 bytes"):
        with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], output_dir=tmp_path, max_size="2M") as prof:
            for _ in range(100_000):
                with lanescope.record_function("work"):
                    pass
        assert prof.key_averages()
    (spool,) = tmp_path.glob("*.lspool")
    assert spool.stat().st_size <= 2_000_000


def test_a_reserve_that_the_disk_does_not_have_drops_and_says_so(tmp_path):
    # Nothing fits: that is a warning, never an error of the program.
    with pytest.warns(UserWarning, match="disk_reserve="):
        with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], output_dir=tmp_path, disk_reserve="4000000T"):
            with lanescope.record_function("work"):
                pass


# Records until the file is cut; then the recording is off, and the program goes on.
CUT = """
import faulthandler, glob, os, sys, threading, time, warnings
import lanescope
if "before" in sys.argv: faulthandler.enable()
warnings.simplefilter("always")
prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], output_dir=sys.argv[1])
prof.start()
end = []
def work():
    while not end:
        with lanescope.record_function("work"):
            pass
thread = threading.Thread(target=work)
thread.start()
time.sleep(0.1)
(spool,) = glob.glob(sys.argv[1] + "/*.lspool")
DO_IT
for _ in range(20000):
    with lanescope.record_function("later"):
        pass
time.sleep(0.1)
end.append(1)
thread.join()
prof.stop()
print("the program goes on")
with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]) as again:
    with lanescope.record_function("again"):
        pass
print([row.key for row in again.key_averages()])
"""


@pytest.mark.parametrize("faults", ["", "before"])
def test_a_cut_file_ends_the_recording_and_not_the_program(tmp_path, faults):
    ran = run(CUT.replace("DO_IT", "os.truncate(spool, 0)"), tmp_path, faults)
    assert ran.returncode == 0, ran.stderr
    assert "the program goes on" in ran.stdout and "['again']" in ran.stdout
    assert "was cut while it was written" in ran.stderr
    assert "Fatal Python error" not in ran.stderr


def test_a_deleted_file_is_a_warning(tmp_path):
    ran = run(CUT.replace("DO_IT", "os.unlink(spool)"), tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "the program goes on" in ran.stdout and "['again']" in ran.stdout
    assert "was deleted while it was written" in ran.stderr


@pytest.mark.parametrize("order", ["faulthandler first", "lanescope first"])
def test_the_programs_own_faults_still_reach_faulthandler(order):
    ran = run(
        """
        import faulthandler, mmap, os, sys, tempfile
        import lanescope
        if sys.argv[1] == "faulthandler first": faulthandler.enable()
        prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU])
        prof.start()
        if sys.argv[1] != "faulthandler first": faulthandler.enable()
        file = tempfile.TemporaryFile()
        file.truncate(8192)
        own = mmap.mmap(file.fileno(), 8192)
        file.truncate(0)
        own[4096] = 1
        """,
        order,
    )
    assert ran.returncode == -7, ran.stderr  # SIGBUS
    assert ran.stderr.count("Fatal Python error: Bus error") == 1 and "line 12" in ran.stderr


def test_a_worker_of_a_dataloader_has_torchs_own_handler():
    pytest.importorskip("torch")
    ran = run(
        """
        import os, signal
        import lanescope
        from torch.utils.data import DataLoader, Dataset

        class Killed(Dataset):
            def __len__(self): return 2
            def __getitem__(self, index): os.kill(os.getpid(), signal.SIGBUS)

        with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]):
            try:
                list(DataLoader(Killed(), num_workers=1))
            except RuntimeError as error:
                print("message:", str(error))
        """
    )
    assert ran.returncode == 0, ran.stderr
    assert "message: DataLoader worker" in ran.stdout
    assert "insufficient shared memory" in ran.stderr  # torch's handler in the worker
