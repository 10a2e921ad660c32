"""What explain says of recordings of examples/fault_sets/blind_faults (tests/data/blind_faults) where a reader once found it wrong or missing."""

from __future__ import annotations

import re

import pytest
from conftest import SOURCE

DATA = SOURCE / "tests/data/blind_faults"
PROFILERS = re.compile("[Mm]ost of the waiting above is the profiler's")


@pytest.fixture
def screen(run):
    return lambda name: re.sub(r"\s+", " ", run("explain", str(DATA / f"{name}.torch.json.gz")).out)


# Timed without a profiler, these took at most 6 % longer than their GPU work (docs/measurements/blind_faults.md).
@pytest.mark.parametrize("name", ["mask_each_layer.good", "logits_of_all_positions.good", "pad_before_conv.good", "pad_before_conv.bad",
                                  "sort_for_top1.good"])
def test_waiting_that_is_the_profilers_is_called_so(screen, name):
    text = screen(name)
    assert PROFILERS.search(text)
    # The headline gives the step without the profiler, so the line below the wall does not give it again.
    if text.startswith("GPU-bound without the profiler"):
        assert len(re.findall(r"[Ww]ithout the profiler", text)) == 1


# These are launch-bound without a profiler, too: 123 us of 38 us of work, 210 of 130, 131 of 64.
@pytest.mark.parametrize("name", ["product_by_broadcast.good", "index_add_contention.good", "upsample_before_conv.good"])
def test_waiting_that_is_the_programs_is_not(screen, name):
    assert "CPU-bound" in screen(name) and not PROFILERS.search(screen(name))


def test_additions_into_few_rows(screen):
    assert "index_add_ adds many rows into a few" in screen("index_add_contention.bad")
    assert "index_add_ " not in screen("index_add_contention.good")  # nor is the fault advised: "to add up rows index_add_ "


def test_rows_that_are_spread_over_memory(screen):
    assert "aten::index reads from a tensor whose last dimension is spread" in screen("transposed_table.bad")
    assert "spread" not in screen("transposed_table.good")


def test_a_mask_is_work_of_attention(screen):
    bad = screen("mask_each_layer.bad")
    assert "aten::repeat copies" in bad and "FlashAttention" not in bad


def test_how_much_of_the_bandwidth_a_resampling_reaches(screen):
    assert re.search(r"upsample bilinear, bf16 \(ATen\), 1.35 ms; \d % of what the memory's bandwidth allows",
                     screen("upsample_before_conv.bad"))


# Equal work that is done again, by the rules that were made for it; the good twin has no such sentence.
@pytest.mark.parametrize("name, said", [
    ("positions_made_each_layer", r"The same constants are computed 12 times per step: aten::arange to aten::cat"),
    ("mask_each_layer", r"The same constants are computed 4 times per step: aten::full to aten::repeat"),
    ("weights_cast_each_call", r"Weights are cast to bfloat16 in each step: 32 casts of \[2048, 2048\] per step"),
    ("tokens_one_hot", r"A product takes a one-hot matrix, 4,096 x 32,000"),
    ("forward_twice", r"7 layers run a second time per step, without gradients"),
])
def test_equal_work_that_is_done_again(screen, name, said):
    bad, good = (re.sub(r" (up to (?:about )?\S+ \S+ (?:\+- \S+ \S+ )?\([<>]?\d+ %\)|predicted \S+ \S+( \(at most \S+ \S+\))?)", "", screen(f"{name}.{kind}")) for kind in ("bad", "good"))
    assert re.search(said, bad)
    assert not re.search(r"The same constants|Weights are cast|one-hot|once more", good)


def test_a_small_parameter_that_widens_activations(screen):
    assert "aten::mul of bf16 [16384, 1024] and f32 [1024] makes the large one f32" in screen("promoted_by_a_parameter.bad")
    assert "makes the large one" not in screen("mask_each_layer.good")
