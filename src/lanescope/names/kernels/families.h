// One reader for each family of kernel names. A reader fills in what the name says. It returns false
// if the name is not of its family.
#pragma once
#include <string_view>

#include "lanescope/names/kernel_name.h"
#include "lanescope/names/kernels/cxx_name.h"

namespace lanescope::names::kernels {

// A name in the forms that readers need. All of them are views of the same text.
struct ParsedText {
  std::string_view text;   // demangled
  std::string_view plain;  // without return type, parameters and template arguments of C++
  CxxName cxx;
};

bool read_copy_name(const ParsedText& name, KernelName& out);        // Memcpy HtoD (...), Memset
bool read_collective_name(const ParsedText& name, KernelName& out);  // NCCL, symmetric memory, ...
bool read_triton_name(const ParsedText& name, KernelName& out);      // triton_poi_fused_add_relu_0
bool read_nvjet_name(const ParsedText& name, KernelName& out);       // nvjet_sm90_tst_...
bool read_xmma_name(const ParsedText& name, KernelName& out);        // sm80_xmma_gemm_...
bool read_cuda_gemm_name(const ParsedText& name,
                         KernelName& out);  // ampere_sgemm_, scudnn, cutlass_80_
bool read_block_gemm_name(const ParsedText& name,
                          KernelName& out);  // _matmul_ogs_, bmm_..._t128x8x256
bool read_tensile_name(const ParsedText& name, KernelName& out);    // Cijk_Ailk_Bljk_...
bool read_attention_name(const ParsedText& name, KernelName& out);  // flash_fwd_kernel, fmha_, ...
bool read_aten_name(const ParsedText& name, KernelName& out);       // at::native::...
bool read_convolution_name(const ParsedText& name, KernelName& out);  // cudnn::, igemm_fwd_, ck::
bool read_library_name(const ParsedText& name, KernelName& out);      // everything with a table row

}  // namespace lanescope::names::kernels
