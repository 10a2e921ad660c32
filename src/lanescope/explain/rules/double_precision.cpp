// Kernels that compute in double precision, real or complex, and what that costs compared with half of the bytes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct DoublePrecision {
  Savings kernels;  // and copies
  std::uint64_t copies = 0;
  std::int64_t copies_ns = 0;
  bool has_complex = false;
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

bool is_complex_double_type(std::string_view type) { return type == "c128"; }

bool is_double_type(std::string_view type) { return type == "f64" || is_complex_double_type(type); }

// Of a kernel that multiplies complex numbers and real ones, such as complex128 and float64, the name says what it computes in, not its
// inputs' type.
std::string_view computed_type(const Facts& facts, const KernelCall& kernel) {
  const std::string_view type = kernel.input_type();
  const bool is_complex =
      type.empty() && facts.trace->name(kernel.slice).find("Functor<c10::complex<double>") !=
                          std::string_view::npos;
  return is_complex ? "c128" : type;
}

// The program's operators whose kernels all compute in double precision.
std::unordered_set<std::uint32_t> double_operators(const Facts& facts, const KernelFacts& kernels) {
  std::unordered_set<std::uint32_t> found, others;
  for (const KernelCall& kernel : kernels.kernels)
    if (const SliceId op = outermost_operator_of(facts, kernel.slice); op != kNone<SliceId>)
      (is_double_type(computed_type(facts, kernel)) ? found : others).insert(raw(op));
  for (const std::uint32_t op : others) found.erase(op);
  return found;
}

// Copies on the GPU of double tensors: their operator's recorded type says so, or that of the kernels beside them.
void add_copies(const Facts& facts, const KernelFacts& kernels, DoublePrecision& found) {
  const Trace& trace = *facts.trace;
  const std::unordered_set<std::uint32_t> operators = double_operators(facts, kernels);
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    if (!trace.name(work->slice).starts_with("Memcpy DtoD")) continue;
    const SliceId op = facts.links.op_of[raw(work->slice)];
    if (op == kNone<SliceId>) continue;
    const auto copied = operator_inputs(trace, op).tensor(0);
    if (copied ? !is_double_type(copied->type->name)
               : !operators.contains(raw(outermost_operator_of(facts, work->slice))))
      continue;
    const std::int64_t time_ns = work->end_ns - work->start_ns;
    found.kernels.add(work->slice, work->start_ns, work->end_ns, time_ns / 2);
    ++found.copies;
    found.copies_ns += time_ns;
  }
}

std::optional<DoublePrecision> measure_double_precision(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  DoublePrecision found;
  found.rate = float_rate(kernels.roofline.spec);
  for (const KernelCall& kernel : kernels.kernels) {
    const std::string_view type = computed_type(facts, kernel);
    if (!is_double_type(type)) continue;
    found.has_complex = found.has_complex || is_complex_double_type(type);
    // In float32, half the bytes take half the time. The operations also take half the time, or
    // less on GPUs that are made for float32.
    const bool is_matrix = kernel.is_gemm() || kernel.is_convolution() || kernel.is_attention();
    const double times = is_matrix ? std::max(2.0, found.rate) : 2.0;
    found.kernels.add(kernel, std::llround(static_cast<double>(kernel.dur_ns()) * (1 - 1 / times)));
    if (is_matrix) found.matrix_ns += kernel.dur_ns();
    found.by_name[facts.trace->name(kernel.slice)].add(kernel.slice, kernel.dur_ns());
  }
  if (found.kernels.calls() == 0) return std::nullopt;
  add_copies(facts, kernels, found);
  found.kernels.finish();
  if (wall_share(facts, found.kernels.time_ns()) < 0.05) return std::nullopt;
  return found;
}

Finding tell_double_precision(const Facts& facts, const DoublePrecision& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          found.has_complex ? "The GPU computes in double precision (float64, complex128): {} "
                              "[kernel|kernels], {} [per step] ({}), of which float32 and "
                              "complex64 would save up to {}."
                            : "The GPU computes in double precision (float64): {} "
                              "[kernel|kernels], {} [per step] ({}), of which float32 would save "
                              "up to {}.",
          {count(found.kernels.calls() - found.copies), ns(facts.per_step(found.kernels.time_ns())),
           ratio(found.kernels.time_ns(), facts.wall.partition.wall_ns),
           ns(facts.per_step(found.kernels.saved_ns()))});
  rate_finding(facts, found.kernels, finding);
  Sentence sum = say(facts, found.has_complex
                                ? "float32 and complex64 have half the bytes, so half of the time "
                                  "goes, at most"
                                : "float32 has half the bytes, so half of the time goes, at most");
  if (found.rate > 2 && found.matrix_ns > 0) {
    sum.pattern += "; in matrix work more: this GPU does {} as many operations in float32";
    sum.values.push_back(factor(std::llround(found.rate * 100), 100));
  }
  finding.arithmetic.push_back(std::move(sum));
  if (found.copies > 0)
    finding.arithmetic.push_back(
        say(facts,
            "{} [copy|copies] of such tensors on the GPU {}, {} [per "
            "step]",
            {count(found.copies), text(found.copies == 1 ? "counts, too" : "count, too"),
             ns(facts.per_step(found.copies_ns))}));
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
  finding.brief = say("The GPU computes in double precision (float64)");
  finding.action = say("If nothing needs the digits: make model and inputs float32 with .float()");
  finding.try_next = {
      "make inputs float32 where they come from NumPy: torch.as_tensor(array, "
      "dtype=torch.float32), and remove .double()",
      "if the results need the digits of double precision, keep it: this is what it costs"};
  if (found.has_complex) {
    finding.brief = say("The GPU computes in double precision (float64, complex128)");
    finding.action = say(
        "If nothing needs the digits: float32 and complex64, from dtype= of the first tensors on");
    finding.try_next.insert(
        finding.try_next.begin() + 1,
        "complex tensors: .to(torch.complex64); .float() would drop their imaginary part");
  }
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
