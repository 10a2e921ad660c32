"""Rules on traces of real programs: each must speak about one, with the numbers that its page quotes, and be silent about a
near miss, a trace that is like it but for what the rule looks for."""

from __future__ import annotations

import json
import re
from typing import List

import pytest

from conftest import SHARED_TRACES, SOURCE

# Rule, the trace it must speak about, what its page quotes of it, the near miss. Shipped traces begin with "tests/".
TABLE = [
    ("collapsed-graph", "h200/mlp_cudagraph.json.gz", ["12 of 17", "9.9%"], "h200/mlp_compile.json.gz"),
    ("communication-bound", "ddp4/straggler/rank0.json.gz", ["26", "10.388ms", "49.3%"], "ddp4/healthy/rank0.json.gz"),
    ("cudnn-benchmark", "public/kineto_torch18_autogradapi_w0.pt.trace.json.gz", ["55 calls", "2.119s", "342.581ms", "1.445s"],
     "public/kineto_torch19_stack_memory_w4.pt.trace.json.gz"),
    ("dead-window", "public/tracelens_mi300_normalization_memory.json.gz", ["173.369us", "29.284us", "aten::layer_norm"],
     "public/param_resnet_2080ti_112k.json.gz"),
    ("edge-gap", "public/tracelens_sglang_decode.json.gz", ["463.295ms", "99.9%", "2.1%", "93.4%"],
     "public/tracelens_b300_sglang_qwen3_decode.json.gz"),
    ("lazy-loading", "public/param_resnet_2080ti_112k.json.gz", ["837.057ms", "726.281ms"], "h200/cnn_train_mistakes.json.gz"),
    ("logits-loss", "tests/data/faults/dim_padding.good.torch.json.gz", ["50,304", "844.840us", "37.1%"],
     "tests/data/h200_mlp_train/trace.json.gz"),
    ("lone-gap", "public/kineto_2020_toparray_resnet50_w4.json.gz", ["11.444ms", "step 10", "36.000us", "11.178ms"],
     "public/kineto_torch19_stack_memory_w4.pt.trace.json.gz"),
    ("outside-graphs", "public/hta_v100_test_rank1of2.json.gz", ["807 kernels", "57.633ms", "50.9%"],
     "h200/mlp_cudagraph.json.gz"),
    ("profiler-stall", "h200/64_bf16_warm_eager_w0_0_a20.json", ["2.064ms", "48.4%"], "h200/64_bf16_warm_eager.json"),
    ("unfused-norm", "h200/llama_prefill.json.gz", ["6.236ms", "6.471ms", "34.7%"], "tests/data/h200_mlp_train/trace.json.gz"),
]


def path_of(trace: str) -> str:
    if trace.startswith("tests/"):
        return str(SOURCE / trace)
    if not SHARED_TRACES.is_dir():
        pytest.skip(f"LOUD: no real traces at {SHARED_TRACES}; set LANESCOPE_SHARED_TRACES")
    return str(SHARED_TRACES / trace)


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace(" %", "%")


@pytest.mark.parametrize("rule,trace,quoted,near_miss", TABLE, ids=[row[0] for row in TABLE])
def test_cli_a_rule_speaks_about_a_real_trace_and_its_page_quotes_it(run, rule: str, trace: str, quoted: List[str],
                                                                     near_miss: str):
    done = run("explain", path_of(trace), "--question", rule)
    answer = json.loads(run("explain", path_of(trace), "--json").out)
    assert rule in [finding["rule"] for finding in answer["findings"]]
    page = plain((SOURCE / "docs" / "rules" / f"{rule}.md").read_text())
    example = page.split("**A real example.**")[1].split("**When it stays quiet.**")[0]
    for number in quoted:
        assert number in plain(done.out), done.out
        assert number in example, example
    other = json.loads(run("explain", path_of(near_miss), "--json").out)
    assert rule not in [finding["rule"] for finding in other["findings"]]
