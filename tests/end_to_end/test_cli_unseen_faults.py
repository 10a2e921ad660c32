"""What explain says of recordings of examples/fault_sets/unseen_faults (tests/data/unseen_faults): what it once said wrongly or not at all."""

from __future__ import annotations

import re

import pytest
from conftest import SOURCE

DATA = SOURCE / "tests/data/unseen_faults"


@pytest.fixture
def screen(run):
    return lambda name: re.sub(r"\s+", " ", run("explain", str(DATA / f"{name}.json.gz")).out)


def test_a_matrix_that_is_sorted_in_each_layer(screen):
    assert "coalesce() it once, before the loop" in screen("adjacency_coalesced_each_layer.bad.torch")


def test_a_small_table_with_sparse_gradients(screen):
    assert "nn.Embedding(sparse=False)" in screen("sparse_gradients.bad.torch")
    assert "sparse=True" not in screen("sparse_gradients.good.torch")


def test_similarities_of_all_pairs(screen):
    assert "F.normalize(a) @ F.normalize(b).T" in screen("similarity_of_all_pairs.bad.lanescope")


def test_a_program_that_sleeps_is_not_slow_at_launching(screen):
    said = screen("polling_for_a_batch.bad.lanescope")
    assert "waits while the program sleeps" in said
    assert "launches work too slowly" not in said


def test_values_that_are_read_on_the_cpu_are_no_waits(screen):
    assert "item" not in screen("numbers_read_on_the_cpu.good.lanescope")


def test_compiled_code_without_generated_kernels(screen):
    assert 'use backend="inductor"' in screen("debug_backend_left.bad.lanescope")


def test_weights_that_are_copied_into_one_block(screen):
    assert "flatten_parameters()" in screen("lstm_weights_scattered.bad.lanescope")


def test_a_graph_of_the_backward_pass_that_nothing_uses(screen):
    assert "without create_graph=True" in screen("create_graph_left_on.bad.lanescope")


def test_objects_that_are_gathered(screen):
    assert "objects are pickled" in screen("metrics_gathered_as_objects.bad.lanescope")
