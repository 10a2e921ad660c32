"""What explain says of recordings of examples/fault_sets/strangers_faults (tests/data/strangers_faults), mended after the first reading of them."""

from __future__ import annotations

import re

import pytest
from conftest import SOURCE

DATA = SOURCE / "tests/data/strangers_faults"


@pytest.fixture
def screen(run):
    return lambda name, *flags: re.sub(r"\s+", " ", run("explain", *flags, str(DATA / f"{name}.lanescope.json.gz")).out)


@pytest.mark.parametrize("name, told", [
    ("bags_by_lookup_and_sum.bad", r"aten::embedding writes out rows that are only added up.*nn\.EmbeddingBag"),
    ("complex_transform_of_sound.bad", r"aten::fft_fft makes the whole spectrum of real numbers.*torch\.fft\.rfft"),
    ("softmax_before_argmax.bad", r"aten::softmax is read by argmax only"),
    ("tensor_from_list_of_arrays.bad", r"arrays: torch\.from_numpy\(np\.stack\(list\)\) \(at programs/host\.py:49 step\)"),
])
def test_the_remedy(screen, name, told):
    assert re.search(told, screen(name))


@pytest.mark.parametrize("name", ["bags_by_lookup_and_sum.good", "complex_transform_of_sound.good", "confidence_and_class.good",
                                  "channels_last_already.good"])
def test_no_such_remedy_for_a_healthy_program(screen, name):
    assert not re.search(r"EmbeddingBag|fft\.rfft|read by argmax only|np\.stack", screen(name, "--full"))


def test_kernels_that_begin_before_the_one_before_them_ends_are_gpu_work(screen):
    said = screen("channels_last_already.good")
    assert re.search(r"ConvolutionBackward0, backward pass: GPU work", said)
    assert "does not explain" not in said
