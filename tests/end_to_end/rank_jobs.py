"""What tests of `lanescope ranks` share: drawn jobs, and the answer as JSON."""

from __future__ import annotations

import json
import pathlib
import sys

from conftest import SOURCE

sys.path.insert(0, str(SOURCE / "tools"))
import draw_job  # noqa: E402


def job_of(run, folder, *flags):
    ran = run("ranks", str(folder), "--json", *flags)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def drawn(tmp_path: pathlib.Path, *flags: str):
    truth = draw_job.draw([str(tmp_path / "job"), *flags])
    return tmp_path / "job", truth


def remarks(job, kind):
    return [remark["text"] for remark in job["remarks"] if remark["kind"] == kind]
