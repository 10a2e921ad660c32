"""What explain says of work that shapes show to be more than the result needs, in recordings without a GPU."""

from __future__ import annotations

import pytest
from conftest import DATA


@pytest.fixture
def screen(run):
    return lambda name: " ".join(run("explain", str(DATA / "cpu_faults" / f"{name}.torch.json.gz")).out.split())


@pytest.mark.parametrize(
    "name, said",
    [
        ("frames_thrown_away", ["Of the result of aten::matmul, [4, 80, 3277], only 6 % is read",
                                "Let aten::stft make only what is kept"]),
        ("queue_of_keys_copied", ["aten::cat copies 2,097,152 elements, of which 2,048 are new",
                                  "write the new rows over the oldest"]),
        ("system_prompt_read_again", ["All 4 rows begin with the same 256 of 272",
                                      "compute that part once"]),
    ])
def test_work_that_is_not_needed_is_named(screen, name, said):
    text = screen(f"{name}.bad")
    for words in said:
        assert words in text


@pytest.mark.parametrize("name", ["frames_thrown_away", "queue_of_keys_copied", "system_prompt_read_again"])
def test_the_mended_twin_gets_none_of_it(screen, name):
    text = screen(f"{name}.good")
    for words in ("is read", "are new", "begin with the same"):
        assert words not in text
