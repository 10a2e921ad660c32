"""Lightning's PyTorchProfiler, unmodified. It makes torch.profiler's profile itself."""

from __future__ import annotations

import os

import lanescope
import pytest
import torch
from conftest import file_counts, need, torch_profiler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def modules(name):
    """lightning and pytorch_lightning are the same code under two names."""
    lightning = need("lightning.pytorch" if name == "lightning" else name)
    return lightning, need(lightning.__name__ + ".profilers").PyTorchProfiler


def fit(name, folder, **arguments):
    lightning, profiler_class = modules(name)

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(16, 2)

        def training_step(self, batch, index):
            return self.layer(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    torch.manual_seed(0)
    profiler = profiler_class(dirpath=str(folder), filename="report", row_limit=1000, **arguments)
    trainer = lightning.Trainer(
        max_epochs=1,
        limit_train_batches=8,
        profiler=profiler,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=str(folder),
    )
    data = DataLoader(TensorDataset(torch.randn(32, 16)), batch_size=4)
    trainer.fit(Model(), data)
    files = sorted(os.listdir(folder))
    report = (folder / "fit-report.txt").read_text()
    names = {line.split("  ")[0].strip() or line.split()[0] for line in report.splitlines() if "aten::" in line}
    traces = [file_counts(folder / file) for file in files if ".pt.trace.json" in file]
    return {"files": len(files), "report": len(names) > 3 and {n.split()[0] for n in names}, "traces": traces}


@pytest.mark.parametrize("name", ["lightning", "pytorch_lightning"])
def test_lanescopes_schedule_and_activities_in_torchs_profile(name, tmp_path):
    schedule = {"wait": 1, "warmup": 1, "active": 2}
    theirs = fit(
        name,
        tmp_path / "theirs",
        schedule=torch_profiler.schedule(**schedule),
        activities=[torch_profiler.ProfilerActivity.CPU],
    )
    ours = fit(
        name, tmp_path / "ours", schedule=lanescope.schedule(**schedule), activities=[lanescope.ProfilerActivity.CPU]
    )
    assert theirs["traces"] and theirs["report"]
    assert ours == theirs


@pytest.mark.parametrize("name", ["lightning", "pytorch_lightning"])
def test_lightning_on_lanescopes_profile(name, tmp_path, lanescope_as_torch_profiler):
    schedule = {"wait": 1, "warmup": 1, "active": 2}
    theirs = fit(
        name,
        tmp_path / "theirs",
        schedule=torch_profiler.schedule(**schedule),
        activities=[torch_profiler.ProfilerActivity.CPU],
    )
    lanescope_as_torch_profiler()
    ours = fit(
        name, tmp_path / "ours", schedule=lanescope.schedule(**schedule), activities=[lanescope.ProfilerActivity.CPU]
    )
    assert ours == theirs
