"""Names of recordings: a name that is taken gets a count, and nothing of an earlier run is touched."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

import lanescope


def record_as(base, **options):
    prof = lanescope.profile(**options)
    prof._spool_path = f"{base}.lspool"
    prof._free_name = True
    with prof:
        with lanescope.record_function("work"):
            pass
    return pathlib.Path(prof.spool_path).name


@pytest.mark.parametrize("ending", [".lspool", ".json", ".json.gz", ".json.zst", ".txt"])
def test_a_name_that_an_earlier_run_has_gets_a_count(tmp_path, ending):
    (tmp_path / f"train_1{ending}").write_text("of an earlier run")
    (tmp_path / "train_1_2.lspool").symlink_to("nowhere")
    assert record_as(tmp_path / "train_1") == "train_1_3.lspool"
    assert record_as(tmp_path / "train_1") == "train_1_4.lspool"
    assert (tmp_path / f"train_1{ending}").read_text() == "of an earlier run"
    assert not (tmp_path / "nowhere").exists()


def test_a_path_that_the_program_chose_itself_is_not_changed(tmp_path):
    (tmp_path / "mine.lspool").write_text("of an earlier run")
    prof = lanescope.profile()
    prof._spool_path = str(tmp_path / "mine.lspool")
    with pytest.raises(lanescope.Error, match="exists already"):
        prof.start()
    assert os.listdir(tmp_path) == ["mine.lspool"]


def test_processes_that_want_one_name_each_get_one(tmp_path):
    code = (
        "import lanescope, sys\nsys.stdin.read(1)\nprof = lanescope.profile()\n"
        f"prof._spool_path, prof._free_name = {str(tmp_path / 'train_1.lspool')!r}, True\n"
        "prof.start()\nprint(prof.spool_path)\nprof.stop()\n"
    )
    both = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen([sys.executable, "-c", code], **both) for _ in range(6)]
    for child in children:
        child.stdin.close()
    names = sorted(pathlib.Path(child.stdout.read().strip()).name for child in children)
    assert [child.wait() for child in children] == [0] * 6
    assert names == ["train_1.lspool"] + [f"train_1_{n}.lspool" for n in range(2, 7)]


def test_recordings_of_profiles_say_when_and_where_they_were_made(tmp_path):
    for _ in range(2):
        with lanescope.profile(output_dir=tmp_path):
            pass
    names = sorted(os.listdir(tmp_path))
    assert len(names) == 2
    assert all(re.fullmatch(rf"lanescope_\d{{8}}T\d{{6}}Z_[^_]+_{os.getpid()}(_2)?\.lspool", name) for name in names), names


def test_a_container_that_starts_again_records_again(run_python, tmp_path):
    """The same program, process id, host and second, after a kill: the new run records, the old file stays."""
    code = (
        "import os, sys\nfrom lanescope import _autorecord, record\n"
        "os.environ['LANESCOPE_RUNS'] = str(int(os.environ.get('LANESCOPE_RUNS', '0')) + 1)\n"
        "settings = {'LANESCOPE_RECORD_DIR': 'out', 'LANESCOPE_RECORD_STARTED': '20261123T061902Z',\n"
        "            'LANESCOPE_RECORD_COMMAND': record.results_command()}\n"
        "recording = _autorecord.AutoRecording(settings, 'train')\nrecording.begin()\n"
        "import lanescope\nwith lanescope.record_function('work'):\n    pass\n"
        "if os.environ['LANESCOPE_RUNS'] != '3':\n    os.execv(sys.executable, [sys.executable, *sys.argv])\n"
        "recording.finish()\n"
    )
    done = run_python(code=code)
    assert "not recorded" not in done.stderr, done.stderr
    left = sorted(re.sub(r"Z_[^_]+_\d+", "Z_HOST_PID", name) for name in os.listdir(tmp_path / "out"))
    base = "train_20261123T061902Z_HOST_PID"
    assert left == sorted([f"{base}.lspool", f"{base}_2.lspool", f"{base}_3.json", f"{base}_3.txt"])
