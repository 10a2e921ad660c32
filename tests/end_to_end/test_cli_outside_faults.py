"""What explain says of recordings of examples/fault_sets/outside_faults (tests/data/outside_faults): faults that someone planted who had not read
its rules, and healthy programs that look suspicious."""

from __future__ import annotations

import re

import pytest
from conftest import SOURCE

DATA = SOURCE / "tests/data/outside_faults"


@pytest.fixture
def screen(run):
    return lambda name, *flags: re.sub(r"\s+", " ", run("explain", *flags, str(DATA / f"{name}.torch.json.gz")).out)


def test_windows_that_a_python_loop_slices(screen):
    said = screen("windows_stacked_in_python.bad")
    assert "A Python loop calls aten::slice 505 times per step" in said
    assert re.search(r"1\. A Python loop .* predicted 1\.\d+ ms", said), "measured: 1.65 ms"


def test_the_loss_holds_the_step_when_its_softmax_runs_along_the_wrong_dimension(screen):
    said = screen("logits_transposed_for_loss.bad")
    assert re.search(r"6\d % aten::cross_entropy_loss, in step \(programs/losses\.py:22\): GPU work", said)
    assert "1 % of what the memory's bandwidth allows" in said
    assert "Put classes last: F.cross_entropy(x.flatten(0, 1), y.flatten())" in said
    assert "larger batch" not in said


def test_steps_that_do_the_same_work_are_not_told_to_log_less(screen):
    assert "Log, evaluate" not in screen("chain_from_the_left.good")


def test_the_gain_of_one_kernel_for_a_chain_is_the_measured_one(screen):
    found = re.search(r"predicted (\d\.\d+) ms .*aten::kl_div", screen("smoothed_targets_built.bad"))
    assert found and float(found[1]) == pytest.approx(1.26, rel=0.12), "measured: 1.26 ms"


def test_a_transform_of_an_awkward_length(screen):
    assert "prime factor above 127" in screen("long_filter_direct.good")


@pytest.mark.parametrize("name, false_advice", [
    ("tf32_is_on.good", "allow_tf32|set_float32_matmul_precision"),
    ("views_before_products.good", "contiguous|transposed|permut"),
    ("packed_by_one_cat.good", "aten::cat|preallocate"),
    ("experts_by_mask.good", "aten::nonzero makes"),
    ("bilinear_layer.good", "rilinear"),
    ("chain_from_the_left.good", "order of"),
])
def test_what_is_false_of_a_healthy_program(screen, name, false_advice):
    assert not re.search(false_advice, screen(name, "--full"))


# Mended after the first reading.


@pytest.mark.parametrize("name, told", [
    ("windows_stacked_in_python.bad", r"x\.unfold\(dim, size, step\)"),
    ("chain_from_the_left.bad", r"A @ \(B @ x\) instead of \(A @ B\) @ x"),
    ("long_filter_direct.bad", "Convolve by FFT"),
    ("smoothed_targets_built.bad", r"label_smoothing="),
    ("launches_blocking.bad", "Unset CUDA_LAUNCH_BLOCKING"),
])
def test_the_remedy(screen, name, told):
    assert re.search(told, screen(name))


@pytest.mark.parametrize("name", ["chain_from_the_left.good", "long_filter_direct.good", "views_before_products.good", "tf32_is_on.good",
                                  "packed_by_one_cat.good", "experts_by_mask.good"])
def test_no_such_remedy_for_a_healthy_program(screen, name):
    said = screen(name, "--full")
    assert not re.search(r"\.unfold\(|\(B @ x\)|by FFT|label_smoothing|CUDA_LAUNCH_BLOCKING", said)
