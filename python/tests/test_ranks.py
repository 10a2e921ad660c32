"""lanescope.read_ranks: the same answer as the command, as objects and columns."""

from __future__ import annotations

import pathlib

import pytest

import lanescope

STRAGGLER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "ddp4" / "straggler"


def test_the_late_rank_is_found():
    job = lanescope.read_ranks(STRAGGLER)
    assert len(job) == 4 and job.ranks == [0, 1, 2, 3]
    assert job.verdict.kind == "straggler" and job.verdict.ranks == [1]
    assert "Rank 1 holds the others up" in str(job.verdict)
    assert str(job.verdict)[:30] in str(job).replace("\n", " ")
    assert job.remarks == []


def test_columns_are_numbers_a_rank_and_a_step():
    np = pytest.importorskip("numpy")
    job = lanescope.read_ranks([STRAGGLER / f"rank{rank}.json.gz" for rank in (1, 0, 3, 2)], workers=2)
    assert job.column("own_ns").dtype == np.int64 and int(job.column("own_ns").argmax()) == 1
    assert job.steps("late_ns").shape == (len(job.data["steps"]), 4)


def test_nothing_to_read_is_an_error(tmp_path):
    with pytest.raises(lanescope.Error):
        lanescope.read_ranks(tmp_path)
