"""Holistic Trace Analysis reads lanescope's files, and what `lanescope convert` makes of others', as it reads torch.profiler's."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest
import torch
from conftest import need, with_both
from small_models import images, resnet

need("hta")
from hta.common.trace import Trace as HtaTrace  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("LANESCOPE_SHARED_TRACES", ROOT.parent / "shared" / "traces"))
COMMAND = os.environ.get("LANESCOPE_COMMAND") or shutil.which("lanescope")


def test_parsing_a_cpu_program(tmp_path):
    def program(profiler):
        model, inputs = resnet(), images()
        path = tmp_path / f"{profiler.__name__}.json"
        with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU],
            schedule=profiler.schedule(wait=0, warmup=1, active=2, repeat=1),
            on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
            record_shapes=True,
        ) as prof:
            for _ in range(4):
                model(inputs).sum().backward()
                prof.step()
        trace = HtaTrace(trace_files={0: str(path)}, trace_dir=str(tmp_path))
        trace.parse_traces(use_multiprocessing=False)
        frame = trace.get_trace(0)
        symbols = trace.symbol_table.get_sym_table()
        rows = frame[frame["cat"].map(lambda cat: symbols[cat] in ("cpu_op", "user_annotation"))]
        names = rows["name"].map(lambda name: symbols[name])
        return names.value_counts().to_dict(), sorted(trace.get_iterations(0))

    theirs, ours = with_both(program)
    assert theirs[0]["aten::conv2d"] == 26
    assert ours == theirs


GPU_TRACES = ["h200/mlp_train.json.gz", "h200/llama_decode.json.gz", "h200/64_bf16_warm_eager.json"]


def analysis(path):
    """What HTA prints of a trace of a GPU."""
    found = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))
    breakdown = found.get_temporal_breakdown(visualize=False)
    kinds, kernels = found.get_gpu_kernel_breakdown(visualize=False, num_kernels=20)
    return {
        "temporal breakdown": breakdown.to_dict(),
        "kernel kinds": kinds.to_dict("records"),
        "kernels": sorted(kernels.to_dict("records"), key=str),
        "steps": found.get_profiler_steps(),
        "launches": found.get_cuda_kernel_launch_stats(visualize=False)[0].describe().to_dict(),
    }


@pytest.mark.parametrize("name", GPU_TRACES)
def test_convert_changes_no_result(name, tmp_path):
    if not (SHARED / name).exists():
        pytest.skip(f"needs the collection of real traces (LANESCOPE_SHARED_TRACES; {SHARED / name} is not there)")
    if COMMAND is None:
        pytest.skip("needs the lanescope command in PATH, or LANESCOPE_COMMAND")
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    before = tmp_path / "before" / pathlib.Path(name).name
    shutil.copy(SHARED / name, before)
    after = tmp_path / "after" / before.name
    subprocess.run([COMMAND, "convert", str(before), str(after)], check=True, stdout=subprocess.DEVNULL)
    theirs, ours = analysis(before), analysis(after)
    assert theirs["temporal breakdown"] and theirs["kernels"]
    assert ours == theirs
    assert torch is not None
