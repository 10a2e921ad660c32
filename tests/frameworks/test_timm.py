"""A timm model, traced for TensorBoard."""

from __future__ import annotations

import os
import re
import sys

import torch
from conftest import counts, file_counts, need, shapes, with_both


def import_timm():
    """timm imports torchvision; one that was built for another torch lacks its operators, which no test here calls."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    while True:
        try:
            return need("timm"), library
        except RuntimeError as error:
            missing = re.search(r"operator torchvision::(\w+) does not exist", str(error))
            if missing is None:
                raise
            library.define(f"{missing.group(1)}() -> ()")
            for name in [name for name in sys.modules if name.split(".")[0] in ("timm", "torchvision")]:
                del sys.modules[name]


timm, operators = import_timm()


def test_a_model_with_the_tensorboard_handler(tmp_path):
    def program(profiler):
        torch.manual_seed(0)
        model = timm.create_model("resnet10t", pretrained=False, num_classes=4, in_chans=3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        folder = tmp_path / profiler.__name__
        with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU],
            schedule=profiler.schedule(wait=1, warmup=1, active=1, repeat=1),
            on_trace_ready=profiler.tensorboard_trace_handler(str(folder), use_gzip=True),
            record_shapes=True,
            profile_memory=True,
        ) as prof:
            for _ in range(4):
                optimizer.zero_grad()
                model(torch.randn(2, 3, 64, 64)).sum().backward()
                optimizer.step()
                prof.step()
        files = sorted(os.listdir(folder))
        assert files[-1].endswith(".pt.trace.json.gz")
        return counts(prof), shapes(prof), file_counts(folder / files[-1])

    theirs, ours = with_both(program)
    assert ours == theirs
