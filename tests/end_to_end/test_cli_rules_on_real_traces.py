"""Rules on traces of real programs: each must speak about one, with the numbers that its page quotes, and be silent about a
near miss, a trace that is like it but for what the rule looks for."""

from __future__ import annotations

import json
import re
from typing import List

import pytest

from conftest import NEEDS_SHARED_TRACES, SHARED_TRACES, SOURCE


def faults(name: str) -> str:
    return f"tests/data/faults/{name}.json.gz"


# Rule, the trace it must speak about, what its page quotes of it, the near miss. Shipped traces begin with "tests/".
TABLE = [
    ("collapsed-graph", "tests/data/h200/mlp_cudagraph.json.gz", ["12 of 17", "9.9%"], "tests/data/h200/mlp_compile.json.gz"),
    ("communication-bound", "tests/data/ddp4/straggler/rank0.json.gz", ["13", "10.388ms", "49.3%"], "tests/data/ddp4/healthy/rank0.json.gz"),
    ("cpu-time", "tests/data/torch213_worker_restart/trace.json.gz", ["10.226ms", "50.2%", "5.055ms", "35.129us", "5.136ms"],
     "tests/data/h200_mlp_train/trace.json.gz"),
    ("cudnn-benchmark", "public/kineto_torch18_autogradapi_w0.pt.trace.json.gz", ["68 calls", "2.203s", "398.568ms", "1.445s"],
     "public/kineto_torch19_stack_memory_w4.pt.trace.json.gz"),
    ("dead-window", "public/tracelens_mi300_normalization_memory.json.gz", ["173.369us", "29.284us", "aten::layer_norm"],
     "public/param_resnet_2080ti_112k.json.gz"),
    ("edge-gap", "public/tracelens_sglang_decode.json.gz", ["463.295ms", "99.9%", "2.1%", "93.4%"],
     "public/tracelens_b300_sglang_qwen3_decode.json.gz"),
    ("graph-opportunity", "tests/data/h200/cnn_train_mistakes.json.gz", ["same 488 pieces", "3.669ms", "21.9%"],
     "tests/data/h200/mlp_cudagraph.json.gz"),
    ("lazy-loading", "public/param_resnet_2080ti_112k.json.gz", ["837.057ms", "726.281ms"], "tests/data/h200/cnn_train_mistakes.json.gz"),
    ("lone-gap", "public/kineto_2020_toparray_resnet50_w4.json.gz", ["11.444ms", "step 10", "36.000us", "11.178ms"],
     "public/kineto_torch19_stack_memory_w4.pt.trace.json.gz"),
    ("outside-graphs", "public/hta_v100_test_rank1of2.json.gz", ["807 kernels", "57.633ms", "50.9%"],
     "tests/data/h200/mlp_cudagraph.json.gz"),
    ("profiler-stall", "h200/llama_decode.json.gz", ["4.086ms", "1.3%"], "tests/data/h200_64_bf16_warm_eager/trace.json"),
    ("self-total", "tests/data/h200_mlp_train/trace.json.gz", ["194.685us", "18.221us", "2.718ms", "2.2 times", "1.217ms"],
     faults("tiny_ops.bad.torch")),
    ("slowed-compute", "tests/data/ddp4/healthy/rank0.json.gz", ["175.135us", "253.120us", "855.474us", "3.040ms"],
     "tests/data/faults/serial_communication.bad.torch.json.gz"),
    ("unfused-norm", "tests/data/h200/llama_prefill.json.gz", ["6.236ms", "6.471ms", "34.7%"], "tests/data/h200_mlp_train/trace.json.gz"),
]

ON_REQUEST = ("self-total", "matmul-chain", "occupancy-query")  # run only when they are asked

# Planted faults, with their fixed twins.
TABLE += [
    ("communication-bound", faults("communication_bound.bad.torch"), ["1.515ms", "5.802ms", "26.1%"],
     faults("communication_bound.good.torch")),
    ("cudnn-benchmark", faults("new_image_size.bad.lanescope"), ["4 calls", "218.640ms", "45.184ms"],
     faults("new_image_size.good.lanescope")),
    ("first-allocations", faults("cold_first_step.bad.torch"), ["16 times", "2.834ms", "2.271ms"],
     faults("cold_first_step.good.torch")),
    ("first-collective", faults("cold_first_collective.bad.lanescope"), ["508.138ms", "37.580us"],
     faults("cold_first_collective.good.lanescope")),
    ("graph-gaps", faults("uncaptured_size.bad.torch"), ["5 gaps", "2.359ms", "572.535us", "54.3%"],
     faults("uncaptured_size.good.torch")),
    ("copy-bound", faults("output_to_cpu.bad.torch"), ["42.685ms", "40.045ms", "93.8%", "1.261ms"],
     faults("output_to_cpu.good.torch")),
    ("same-flops", faults("dataloader_wait.good.torch"), ["274.335us", "194.111us"], faults("dim_padding.bad.torch")),
    ("graph-opportunity", faults("no_cuda_graph.bad.torch"), ["same 48 pieces", "943.748us", "72.0%"],
     faults("no_cuda_graph.good.torch")),
    ("growing-cat", faults("cat_kv_cache.bad.torch"), ["48 calls", "2,054 to 2,059", "537.641us"],
     faults("cat_kv_cache.good.torch")),
    ("half-off-tensor-cores", faults("depthwise_conv.bad.lanescope"), ["5 kernels", "1.610ms", "1.498ms"],
     faults("depthwise_conv.good.lanescope")),
    ("hotspot-kernel", faults("one_hotspot.bad.lanescope"), ["70.6%", "840.302us"],
     faults("one_hotspot.good.lanescope")),
    ("lazy-loading", faults("late_evaluation.bad.lanescope"), ["53 calls", "122.313ms", "115.942ms"],
     faults("late_evaluation.good.lanescope")),
    ("logits-loss", faults("loss_over_words.bad.torch"), ["50,304", "5.418ms", "63.0%"], faults("loss_over_words.good.torch")),
    ("low-occupancy", faults("few_warps.bad.lanescope"), ["15.6%", "13.4%", "839.143us", "726.838us"],
     faults("few_warps.good.lanescope")),
    ("memory-fragmentation", faults("growing_shapes.bad.lanescope"), ["3.61 GiB", "664.00 MiB", "82.0%", "53 times"],
     faults("growing_shapes.good.lanescope")),
    ("memory-growth", faults("leak.bad.torch"), ["72.00 MiB", "5 of 5 steps"], faults("leak.good.torch")),
    # Its good twin is not shipped; the near miss has a large peak of blocks that stay.
    ("memory-peak", faults("temporaries_at_the_peak.bad.torch"), ["6.59 GiB", "4.00 GiB", "60.7%"],
     faults("growing_shapes.good.lanescope")),
    ("micro-step-sync", faults("micro_step_sync.bad.torch"), ["12 of 16", "6.540ms", "3.605ms"],
     faults("micro_step_sync.good.torch")),
    ("outside-graphs", faults("uncaptured_size.bad.torch"), ["3 of 8 steps", "5.663ms", "707.924us"],
     faults("uncaptured_size.good.torch")),
    ("scaler-sync", faults("scaler_sync.bad.torch"), ["10 waits", "224.570us", "3.1%"],
     faults("scaler_sync.good.torch")),
    ("serial-communication", faults("serial_communication.bad.torch"), ["1.736ms", "100.0%"],
     faults("serial_communication.good.torch")),
    ("slow-attention", faults("slow_attention.bad.lanescope"), ["178 TFLOP/s", "17.9%", "12.365ms", "9.008ms"],
     faults("slow_attention.good.lanescope")),
    ("slow-first-step", faults("cold_first_step.bad.torch"), ["221.296ms", "5.669ms", "39.0 times", "88.039ms"],
     faults("cold_first_step.good.torch")),
    ("slowed-compute", faults("communication_bound.good.torch"), ["310.430us", "190.111us", "493.736us", "1.408ms"],
     faults("communication_bound.bad.torch")),
    ("small-collectives", faults("small_collectives.bad.lanescope"), ["60 of 60", "32.40 KiB", "411.669us"],
     faults("small_collectives.good.lanescope")),
    ("uneven-steps", faults("checkpoint_every_n.bad.torch"), ["3 of 8", "123.168ms", "8.893ms", "42.949ms"],
     faults("checkpoint_every_n.good.torch")),
    ("unfused-chain", faults("unfused_chain.bad.lanescope"), ["134,217,728", "1.382ms", "1.270ms"],
     faults("unfused_chain.good.lanescope")),
    ("unfused-norm", faults("handmade_rmsnorm.bad.lanescope"), ["1.774ms", "1.719ms"],
     faults("handmade_rmsnorm.good.lanescope")),
    ("cpu-built-tensor", faults("cpu_built_tensor.bad.lanescope"), ["20.223ms"],
     faults("cpu_built_tensor.good.lanescope")),
    ("full-queue", faults("full_queue.bad.torch"), ["2,364", "117.492us", "1,021", "47.950ms"], faults("full_queue.good.torch")),
    ("wave-tail", faults("wave_quantisation.bad.torch"), ["272 blocks", "2.864ms", "896.925us"],
     faults("wave_quantisation.good.torch")),
    ("backward-gap", faults("report_before_backward.bad.torch"), ["5.192ms", "35.4%", "79.789us"],
     faults("report_before_backward.good.torch")),
    ("kernel-spread", faults("padding_in_one_row.bad.torch"), ["10 of 40 calls", "35.008us", "143.521us", "217.614us"],
     faults("padding_in_one_row.good.torch")),
    ("long-step", faults("validation_in_a_step.bad.torch"), ["24.267ms", "1.111ms", "23.760ms", "21.598ms"],
     faults("validation_in_a_step.good.torch")),
    ("lost-events", faults("calls_not_recorded.bad.torch"), ["23 of 159"], faults("calls_not_recorded.good.torch")),
    ("memory-limit", faults("memory_nearly_full.bad.torch"), ["128.77 GiB", "139.80 GiB", "92.1%", "128.71 GiB"],
     faults("memory_nearly_full.good.torch")),
    ("no-gpu-work", faults("gpu_not_recorded.bad.torch"), ["12 kernels"], faults("gpu_not_recorded.good.torch")),
    ("recompute", faults("checkpointed_layers.bad.lanescope"), ["1.814ms", "15.6%", "12 operators", "1.434ms"],
     faults("checkpointed_layers.good.lanescope")),
    # Its good twin is not shipped; the near miss launches as many small kernels without being held up.
    ("back-and-forth", "tests/data/h100_types/float32_scan.json.gz", ["339.731us", "16.9%"],
     "tests/data/h100_types/bfloat16_scan.json.gz"),
    ("slow-backward", "tests/data/h100_backward/custom_function.json.gz", ["24.2 times", "1.034ms", "42.792us"],
     "tests/data/h100_backward/clamp.json.gz"),
    ("library-setup", "public/hta_critical_path_simple_add.json.gz", ["40.163s", "24.587s"],
     "tests/data/h200/cnn_train_mistakes.json.gz"),
    ("slow-launches", faults("shared_core.bad.lanescope"), ["3 of 2,850", "5.749us", "634.375us", "16.9%"],
     faults("tiny_ops.bad.torch")),
    ("triton-autotune", faults("autotuned_sizes.bad.lanescope"), ["114 trial runs", "11.980ms", "19.374ms"],
     faults("autotuned_sizes.good.lanescope")),
]

# What is normal, what bounds a step, and what the recording is like.
TRAIN, SMALL = "tests/data/h200_mlp_train/trace.json.gz", "tests/data/h200_64_bf16_warm_eager/trace.json"
TABLE += [
    ("collective-keys", "public/hta_v100_test_rank1of2.json.gz", ["60 of 60"], faults("small_collectives.bad.lanescope")),
    ("compiled-code", "tests/data/h200_64_bf16_warm_compile/trace.json", [], SMALL),
    ("cpu-ahead", TRAIN, ["598.063us", "1.302ms", "31"], faults("tiny_ops.bad.torch")),
    ("damaged-file", "public/odd_truncated_mid_event.json", ["104 events", "24,561"], SMALL),
    ("earlier-work", TRAIN, ["7 of 163", "218.205us"], faults("autotuned_sizes.good.lanescope")),
    ("few-steps", SMALL, ["74.044us", "83.686us"], faults("tiny_ops.bad.torch")),
    ("final-sync", TRAIN, ["1.206ms", "94.6%"], faults("autotuned_sizes.good.lanescope")),
    ("gpu-bound", TRAIN, ["95.9%", "2.377ms"], SMALL),
    ("gpu-idle", faults("zero_grad_fills.bad.torch"), ["1.157ms", "3.357ms", "1.074ms"], TRAIN),
    ("host-bound", SMALL, ["78.865us", "2.817us"], TRAIN),
    ("matmul-chain", "tests/data/h200/mlp_eager.json.gz", ["6 matmuls", "9.2%"], SMALL),
    ("occupancy-query", "public/param_resnet_2080ti_112k.json.gz", ["6,048", "196.964us"], SMALL),
    ("stack-cost", "h200/llama_decode_stack.json.gz", ["21,037", "34,284"], TRAIN),
    ("start-up-lag", "tests/data/h200/64_bf16_warm_eager_w0_0_a20.json.gz", ["2.304ms", "2.064ms"], SMALL),
]


def path_of(trace: str) -> str:
    if trace.startswith("tests/"):
        return str(SOURCE / trace)
    if not SHARED_TRACES.is_dir():
        pytest.skip(f"{NEEDS_SHARED_TRACES}; without it: the drawn programs of the rule's <id>_test.cpp")
    return str(SHARED_TRACES / trace)


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace(" %", "%")


@pytest.mark.parametrize("rule,trace,quoted,near_miss", TABLE, ids=[f"{row[0]}-{row[1]}" for row in TABLE])
def test_cli_a_rule_speaks_about_a_real_trace_and_its_page_quotes_it(run, rule: str, trace: str, quoted: List[str],
                                                                     near_miss: str):
    done = run("explain", path_of(trace), "--question", rule)
    asked = ["--question", rule] if rule in ON_REQUEST else []
    answer = json.loads(run("explain", path_of(trace), "--json", *asked).out)
    assert rule in [finding["rule"] for finding in answer["findings"]]
    page = plain((SOURCE / "docs" / "rules" / f"{rule}.md").read_text())
    example = page.split("**A real example.**")[1].split("**When it stays quiet.**")[0]
    for number in quoted:
        assert number in plain(done.out), done.out
        assert number in example, example
    other = json.loads(run("explain", path_of(near_miss), "--json", *asked).out)
    assert rule not in [finding["rule"] for finding in other["findings"]]
