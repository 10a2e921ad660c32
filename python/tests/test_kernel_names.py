"""lanescope.kernel_name: the fields as Python has them; what they mean is tested in C++."""

from __future__ import annotations

import lanescope


def test_a_gemm() -> None:
    name = lanescope.kernel_name("ampere_bf16_s16816gemm_bf16_128x256_ldg8_relu_f2f_stages_64x3_nn")
    assert name.known and name.text == "GEMM bf16 128x256x64 nn +relu (cuBLAS, Ampere)"
    assert (name.library, name.kind, name.operation) == ("cuBLAS", "gemm", "GEMM")
    assert (name.input_type, name.accumulate_type, name.output_type) == ("bf16", "f32", "bf16")
    assert name.tile == (128, 256, 64) and name.stages == 3 and name.layout == "nn" and name.epilogue == ["relu"]
    assert name.cluster is None and name.vector_width is None and name.fused == [] and name.split_k is False
    assert repr(name) == "<lanescope.KernelName GEMM bf16 128x256x64 nn +relu (cuBLAS, Ampere)>"


def test_a_tile_without_k() -> None:
    assert lanescope.kernel_name("volta_sgemm_64x64_nt").tile == (64, 64, None)


def test_a_fused_kernel() -> None:
    name = lanescope.kernel_name("triton_red_fused_add_native_layer_norm_3")
    assert name.fused == ["add", "native_layer_norm"] and name.variant == "reduction"


def test_unknown_and_strange_names() -> None:
    name = lanescope.kernel_name("void mine::thing<int>(int)")
    assert not name.known and name.text == "thing" and name.library is None and name.tile is None
    assert lanescope.kernel_name("").text == ""
    assert lanescope.kernel_name("\u00e9" * 1000).text.endswith("...")
