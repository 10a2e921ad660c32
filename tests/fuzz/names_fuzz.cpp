// Names of kernels and events, mangled or not, any bytes: texts keep their limits, equal names
// give equal answers.
#include "fuzz_support.h"
#include "lanescope/names/event_name.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/names/kernels/cxx_name.h"
#include "lanescope/names/kernels/mangled_name.h"

namespace {

std::string_view piece(lanescope::fuzz::Random& random) {
  return random.text({"_ZN",
                      "_Z",
                      "E",
                      "I",
                      "St",
                      "S_",
                      "S0_",
                      "S1Z_",
                      "T_",
                      "T0_",
                      "NS_",
                      "Li4E",
                      "Lb1E",
                      "LN2at4TypeE3E",
                      "PKf",
                      "DF16b",
                      "DpT_",
                      "Dp",
                      "J",
                      "X",
                      "UlvE_",
                      "UlT_E0_",
                      "L_Z",
                      "C1",
                      "cv",
                      "dv1_",
                      "12_GLOBAL__N_1",
                      "2at6native",
                      "29vectorized_elementwise_kernel",
                      "v",
                      "RK",
                      "<",
                      ">",
                      "(",
                      ")",
                      "::",
                      ", ",
                      "{lambda()#1}",
                      "(anonymous namespace)",
                      "operator()",
                      "void ",
                      "at::native::",
                      "vectorized_elementwise_kernel<4, ",
                      "CUDAFunctor_add<float>",
                      "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                      "triton_poi_fused_add_relu_0",
                      "triton_red_fused__to_copy_",
                      "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize",
                      "128x128x64",
                      "_warpgroupsize1x1x1",
                      "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT",
                      "Cijk_Ailk_Bljk_BBS_BH_MT64x64x64",
                      "cutlass_80_tensorop_",
                      "ampere_sgemm_128x64_nn",
                      "flash_fwd_kernel",
                      "Memcpy HtoD (Pageable -> Device)",
                      "Memset (Device)",
                      "ProfilerStep#17",
                      "Optimizer.step#AdamW.step",
                      "enumerate(DataLoader)#_SingleProcess",
                      "autograd::engine::evaluate_function: ",
                      "AddmmBackward0",
                      "aten::mm",
                      "Torch-Compiled Region: 0/0",
                      "cudaLaunchKernel",
                      "cuLaunchKernelEx",
                      "hipMalloc",
                      "nccl:all_reduce",
                      "train.py(34): forward",
                      "[memory]",
                      "nn.Module: Linear_0",
                      "## Call CompiledFxGraph f4xk ##",
                      "0x7f00",
                      "4294967296",
                      "99999999999999999999",
                      "\xff",
                      "\n",
                      "\x1b[31m"});
}

std::string mutate_name(std::string_view name, lanescope::fuzz::Random& random) {
  std::string mutated(name);
  for (std::size_t edits = 1 + random.below(3); edits > 0; --edits) {
    const std::size_t at = random.below(mutated.size() + 1);
    switch (random.below(5)) {
      case 0:
        mutated.erase(at, 1 + random.below(12));
        break;
      case 1:
        mutated.insert(at, mutated.substr(random.below(mutated.size() + 1), random.below(40)));
        break;
      case 2: {  // the same piece many times: depth and repeats
        const std::string_view again = piece(random);
        std::string many;
        for (std::size_t i = 1 + random.below(200); i > 0; --i) many += again;
        mutated.insert(at, many);
        break;
      }
      default:
        mutated.insert(at, piece(random));
    }
  }
  return mutated;
}

}  // namespace

LANESCOPE_FUZZ_MUTATOR(mutate_name)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  const std::string_view name = fuzz::view(data, size);
  const names::KernelName kernel = names::parse_kernel_name(name);
  fuzz::require(kernel.text.size() <= names::kLongestText, "a kernel's text is short", kernel.text);
  fuzz::require(kernel == names::parse_kernel_name(std::string(name)),
                "equal names, equal answers");
  names::readable_kernel_name(name);
  if (const auto plain = names::kernels::demangled_function(name))
    fuzz::require(plain->size() <= (256u << 10) + name.size(), "a demangled name is bounded");
  const names::kernels::CxxName cut = names::kernels::cut_cxx_name(name);
  fuzz::require(cut.arguments.size() <= 64, "arguments are bounded");
  fuzz::require(cut.base.size() <= name.size() && cut.scope.size() <= name.size(),
                "parts lie in the name");
  const names::EventName event = names::explain_event_name(name);
  fuzz::require(event.text.size() <= names::kLongestText, "an event's text is short", event.text);
  fuzz::require(event == names::explain_event_name(std::string(name)),
                "equal names, equal answers");
  for (const auto category : {CategoryKind::kCpuOp, CategoryKind::kUserAnnotation,
                              CategoryKind::kRuntime, CategoryKind::kOverhead})
    fuzz::require(names::explain_event_name(name, category).text.size() <= names::kLongestText,
                  "an event's text is short, whatever its category");
  return 0;
}
