"""What explain says of recordings of examples/fault_sets/fresh_faults (tests/data/fresh_faults) where a reader once found it wrong or missing."""

from __future__ import annotations

import re

import pytest
from conftest import SOURCE

DATA = SOURCE / "tests/data/fresh_faults"


@pytest.fixture
def screen(run):
    return lambda name, by="torch": re.sub(r"\s+", " ", run("explain", str(DATA / f"{name}.{by}.json.gz")).out)


def test_sums_that_sort_because_they_are_deterministic(screen):
    assert "aten::index_add sorts its indices" in screen("deterministic_left_on.bad")
    assert "use_deterministic_algorithms off" in screen("deterministic_left_on.bad")


def test_a_transform_of_a_prime_length(screen):
    assert "prime factor above 127" in screen("fft_of_a_prime_length.bad")
    assert "prime factor" not in screen("fft_of_a_prime_length.good")


def test_an_order_that_is_used_whole_is_no_topk(screen):
    assert "topk" not in screen("whole_order_is_used.good")


def test_no_wait_is_named_where_there_is_none(screen):
    assert ".item()" not in screen("shuffle_the_whole_set.good")


def test_two_models_of_one_shape_are_two_models(screen):
    said = screen("twin_critics.good")
    assert "twice" not in said and "again" not in said


def test_code_that_the_gpu_waits_for_is_named(screen):
    assert "built-in compress" in screen("frames_compressed_in_the_loop.bad")


def test_a_thread_that_holds_pythons_lock_is_told_by_the_length_of_the_gaps(screen):
    said = screen("thread_of_python.bad", "lanescope")
    assert "Do first 1. Another thread probably holds Python's lock (GIL)" in said
    assert "process" in said
