// Matmuls without recorded shapes whose kernels are made for rows that do not begin at multiples of 16 bytes.
//
// Some kernels of cuBLAS and CUTLASS have in their name how many elements they load at once: align1, ldg8. The libraries choose less
// than 16 bytes where the sizes or the addresses allow no more.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lanescope/analysis/graph_replays.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

// The number after the last "align" or "_ldg" of the name; 0: it has none.
std::uint32_t elements_at_once(std::string_view kernel) {
  for (const std::string_view word : {std::string_view("align"), std::string_view("_ldg")}) {
    const std::size_t at = kernel.rfind(word);
    if (at == kernel.npos) continue;
    std::uint32_t number = 0;
    for (std::size_t i = at + word.size();
         i < kernel.size() && kernel[i] >= '0' && kernel[i] <= '9' && number < 1000; ++i)
      number = number * 10 + static_cast<std::uint32_t>(kernel[i] - '0');
    if (number > 0) return number;
  }
  return 0;
}

// Of tensor cores' inputs; 0: the type is not known, or has its own units.
std::uint32_t elements_of_16_bytes(std::string_view type) {
  if (type == "f16" || type == "bf16") return 8;
  return type == "tf32" ? 4 : 0;
}

struct UnalignedKernels {
  Savings found;
  std::uint32_t elements = 0;  // at once, by the longest
  std::string type;            // of its inputs
  bool is_in_graphs = false;   // the longest; a graph's replay has no shapes
};

Measurement<UnalignedKernels> measure_unaligned_kernels(const Facts& facts) {
  constexpr double kLeastShare = 0.03;
  UnalignedKernels measured;
  std::int64_t longest_ns = 0;
  std::unordered_map<const names::KernelName*, std::uint32_t> elements_of;  // by name
  for (const KernelCall& kernel : kernel_facts(facts).kernels) {
    if (kernel.work || !kernel.is_gemm() || !kernel.is_alone) continue;
    const std::uint32_t wanted = elements_of_16_bytes(kernel.name->input_type);
    const auto [known, is_new] = elements_of.try_emplace(kernel.name, 0);
    if (is_new) known->second = elements_at_once(facts.trace->name(kernel.slice));
    const std::uint32_t elements = known->second;
    if (elements == 0 || elements >= wanted) continue;
    measured.found.add(kernel, kernel.dur_ns());
    if (kernel.dur_ns() <= longest_ns) continue;
    longest_ns = kernel.dur_ns();
    measured.elements = elements;
    measured.type = kernel.name->input_type;
    const SliceId launch = facts.links.launch_of[raw(kernel.slice)];
    measured.is_in_graphs =
        launch != kNone<SliceId> && analysis::is_graph_launch(*facts.trace, launch);
  }
  measured.found.finish();
  if (measured.found.calls() == 0 || wall_share(facts, measured.found.time_ns()) < kLeastShare)
    return Quiet{};
  return measured;
}

Finding tell_unaligned_kernels(const Facts& facts, const UnalignedKernels& measured) {
  Finding finding;
  finding.verdict =
      say(facts,
          "Matmuls use kernels for rows that do not begin at multiples of 16 bytes: {} "
          "[call|calls], {} [per step].",
          {count(measured.found.calls()), ns(facts.per_step(measured.found.time_ns()))});
  finding.arithmetic.push_back(say(
      facts, "by its name, the longest loads {} [element|elements] of {} at once; 16 bytes are {}",
      {count(measured.elements), name(measured.type), count(elements_of_16_bytes(measured.type))}));
  finding.arithmetic.push_back(
      say("up to: all of their time. What aligned rows would take depends on the shapes, which the "
          "trace does not have for these calls"));
  rate_finding(facts, measured.found, finding);
  finding.evidence.push_back(longest_of(facts, measured.found.longest()));
  finding.gain_is_bound = true;
  finding.try_next = {
      "pad the odd size to a multiple of 8 (16-bit types) or 4 (TF32); a vocabulary to a multiple "
      "of "
      "64 or 128",
      measured.is_in_graphs ? "record a run without CUDA graphs, with record_shapes=True: then the "
                              "size is named, and "
                              "the time with aligned rows estimated"
                            : "record with record_shapes=True: then the size is named, and the "
                              "time with aligned rows "
                              "estimated"};
  finding.brief =
      say(facts,
          "Matmul sizes do not fit the tensor cores: {} [kernel|kernels] [per step] for "
          "unaligned rows",
          {count(a_step(facts, measured.found.calls()))});
  finding.action = say("Pad the odd size, such as a vocabulary, to a multiple of 64");
  return finding;
}

}  // namespace

extern constinit const Rule unaligned_kernels_rule = {
    .id = "unaligned-kernels",
    .question = "do matmuls without recorded shapes have sizes that tensor cores are slow at?",
    .meant_by = "tensorcore align1 padding vocabulary",
    .order = 511,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_unaligned_kernels, tell_unaligned_kernels>,
    .fix = Fix::kGpu,
    .keeps_kernels = true,
};

}  // namespace lanescope::explain::rules
