// Kernels that compute in double precision, and what that costs compared with float32.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct DoublePrecision {
  Savings kernels;
  std::map<std::string_view, Named> by_name;
  double rate = 0;  // of float32 to float64 on this GPU; 0: unknown
  std::int64_t matrix_ns = 0;
};

// How many times as many float32 operations the GPU does; 0: unknown.
double float_rate(const GpuSpec* spec) {
  if (!spec || !spec->peak.fp32 || !spec->peak.fp64) return 0;
  const double doubles = std::max(*spec->peak.fp64, spec->peak.fp64_matrix.value_or(0));
  return doubles > 0 ? *spec->peak.fp32 / doubles : 0;
}

std::optional<DoublePrecision> measure_double_precision(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  DoublePrecision found;
  found.rate = float_rate(kernels.roofline.spec);
  for (const KernelCall& kernel : kernels.kernels) {
    if (kernel.input_type() != "f64") continue;
    // In float32, half the bytes take half the time. The operations also take half the time, or
    // less on GPUs that are made for float32.
    const bool is_matrix = kernel.is_gemm() || kernel.is_convolution() || kernel.is_attention();
    const double times = is_matrix ? std::max(2.0, found.rate) : 2.0;
    found.kernels.add(kernel, std::llround(static_cast<double>(kernel.dur_ns()) * (1 - 1 / times)));
    if (is_matrix) found.matrix_ns += kernel.dur_ns();
    found.by_name[facts.trace->name(kernel.slice)].add(kernel.slice, kernel.dur_ns());
  }
  found.kernels.finish();
  if (found.kernels.calls() == 0 || wall_share(facts, found.kernels.time_ns()) < 0.05)
    return std::nullopt;
  return found;
}

Finding tell_double_precision(const Facts& facts, const DoublePrecision& found) {
  Finding finding;
  finding.verdict = say(facts,
                        "The GPU computes in double precision (float64): {} [kernel|kernels], {} "
                        "[per step] ({}), of which float32 would save up to {}.",
                        {count(found.kernels.calls()), ns(facts.per_step(found.kernels.time_ns())),
                         ratio(found.kernels.time_ns(), facts.wall.partition.wall_ns),
                         ns(facts.per_step(found.kernels.saved_ns()))});
  rate_finding(facts, found.kernels, finding);
  Sentence sum = say(facts, "float32 has half the bytes, so half of the time goes, at most");
  if (found.rate > 2 && found.matrix_ns > 0) {
    sum.pattern += "; in matrix work more: this GPU does {} as many operations in float32";
    sum.values.push_back(factor(std::llround(found.rate * 100), 100));
  }
  finding.arithmetic.push_back(std::move(sum));
  std::vector<std::pair<std::string_view, Named>> ranked(found.by_name.begin(),
                                                         found.by_name.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.time_ns > b.second.time_ns; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    Sentence line = say(facts, "{} x{}: {} [per step]",
                        {kernel(ranked[i].first), count(ranked[i].second.count),
                         ns(facts.per_step(ranked[i].second.time_ns))});
    add_line(facts, facts.links.launch_of[raw(ranked[i].second.longest)], line);
    finding.evidence.push_back({ranked[i].second.longest, std::move(line)});
  }
  finding.try_next = {
      "make inputs float32 where they come from NumPy: torch.as_tensor(array, "
      "dtype=torch.float32), and remove .double()",
      "if the results need the digits of double precision, keep it: this is what it costs"};
  finding.brief = say("The GPU computes in double precision (float64)");
  finding.action = say("If nothing needs the digits: make model and inputs float32 with .float()");
  return finding;
}

}  // namespace

extern constinit const Rule double_precision_rule = {
    .id = "double-precision",
    .question = "does the GPU compute in double precision?",
    .meant_by = "float64 fp64 precision",
    .order = 425,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_double_precision, tell_double_precision>,
    .fix = Fix::kGpu,
    .fix_is_bound = true,
    .keeps_kernels = true,
};

}  // namespace lanescope::explain::rules
