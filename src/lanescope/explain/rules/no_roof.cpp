// The GPU is busy nearly all the time and reaches little of what it can do.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "lanescope/base/wide.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/launch_mode.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain::rules {

using analysis::RooflineClass;

namespace {

bool computes_nearly_always(const Facts& facts) {
  const auto& part = facts.wall.partition;
  return kernels_decide(facts) && wide(part.compute_ns) * 10 >= wide(part.wall_ns) * 9;
}

// Longer calls have enough work; their kernels are slow for another reason.
constexpr std::int64_t kLongCallNs = 100'000;

// Operators that read whole tensors in order, whatever their kernels: not strided or scattered.
const char* dense_name(analysis::OperatorKind kind) {
  switch (kind) {
    case analysis::OperatorKind::kGemm:
      return "matrix products";
    case analysis::OperatorKind::kConvolution:
      return "convolutions";
    case analysis::OperatorKind::kAttention:
      return "attention";
    default:
      return nullptr;
  }
}

struct NoRoof {
  Savings found;  // all operators with known work
  Savings
      reachable;  // of `found`, what is at stake: of `dense` alone, or without reads and additions at indices
  double floor_ns = 0;
  bool is_of_long_calls = false;  // more than half of what is above the floors
  const char* dense = nullptr;    // more than half of it is of these: "convolutions"
  bool is_at_indices = false;     // more than half of it is lost in reads and additions at indices
  SliceId worst = kNone<SliceId>;
};

// What calls of one operator take beyond their floors: twelve of 150 us each are worse than one of 180.
struct LostInOperator {
  double lost_ns = 0, most_ns = 0;
  SliceId worst = kNone<SliceId>;
};

std::string_view outermost_name(const Facts& facts, SliceId kernel) {
  const SliceId op = outermost_operator_of(facts, kernel);
  return op == kNone<SliceId> ? std::string_view{} : facts.trace->name(op);
}

SliceId worst_of(const std::map<std::string_view, LostInOperator>& by_operator) {
  return std::max_element(
             by_operator.begin(), by_operator.end(),
             [](const auto& a, const auto& b) { return a.second.lost_ns < b.second.lost_ns; })
      ->second.worst;
}

Measurement<NoRoof> measure_no_roof(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  const auto& roofline = kernels.roofline;
  Savings found;
  double floor_ns = 0;
  std::map<std::string_view, LostInOperator> by_operator;
  double lost_ns = 0, lost_in_long_ns = 0;
  double lost_at_indices_ns = 0;
  std::map<const char*, double> lost_in_dense_ns;
  std::map<const char*, Savings> dense_savings;
  Savings in_order;
  for (const auto& call : roofline.calls) {
    if (call.kind == RooflineClass::kUnrated) continue;
    const double floor = call.achieved_ratio() * static_cast<double>(call.time_ns);
    found.add(call.kernel, call.start_ns, call.start_ns + call.time_ns,
              call.time_ns - std::llround(floor));
    floor_ns += floor;
    const double lost = static_cast<double>(call.time_ns) - floor;
    lost_ns += lost;
    if (call.time_ns >= kLongCallNs) lost_in_long_ns += lost;
    const analysis::OperatorKind kind = roofline.works[call.work].kind;
    const auto add = [&](Savings& savings) {
      savings.add(call.kernel, call.start_ns, call.start_ns + call.time_ns, std::llround(lost));
    };
    if (kind == analysis::OperatorKind::kIndexing)
      lost_at_indices_ns += lost;
    else
      add(in_order);
    if (const char* dense = dense_name(kind)) {
      lost_in_dense_ns[dense] += lost;
      add(dense_savings[dense]);
    }
    LostInOperator& lost_in = by_operator[outermost_name(facts, call.kernel)];
    lost_in.lost_ns += lost;
    if (lost_in.worst == kNone<SliceId> || lost > lost_in.most_ns) {
      lost_in.worst = call.kernel;
      lost_in.most_ns = lost;
    }
  }
  found.finish();
  // Work without a model may be work at which the GPU is good.
  if (floor_ns >= 0.3 * static_cast<double>(roofline.busy_ns)) return Quiet{};
  if (by_operator.empty() || wide(found.time_ns()) * 10 < wide(roofline.busy_ns) * 7)
    return NotChecked{kNeedsOperators};
  if (floor_ns >= 0.3 * static_cast<double>(found.time_ns())) return Quiet{};
  const char* dense = nullptr;
  for (const auto& [label, lost] : lost_in_dense_ns)
    if (lost * 2 > lost_ns) dense = label;
  NoRoof measured{.found = std::move(found),
                  .reachable = dense ? std::move(dense_savings[dense]) : std::move(in_order),
                  .floor_ns = floor_ns,
                  .is_of_long_calls = lost_in_long_ns * 2 > lost_ns,
                  .dense = dense,
                  .is_at_indices = lost_at_indices_ns * 2 > lost_ns,
                  .worst = worst_of(by_operator)};
  measured.reachable.finish();
  return measured;
}

Finding tell_no_roof(const Facts& facts, const NoRoof& measured) {
  const auto& [found, reachable, floor_ns, is_of_long_calls, dense, is_at_indices, worst] =
      measured;
  const auto& part = facts.wall.partition;
  const auto& roofline = kernel_facts(facts).roofline;
  Finding finding;
  finding.verdict =
      say("The GPU is busy but slow: it computes {} of the time, at {} of what it can do.",
          {ratio(part.compute_ns, part.wall_ns), ratio(std::llround(floor_ns), found.time_ns())});
  finding.arithmetic.push_back(say("the operators with known work took {} and need at least {}",
                                   {ns(found.time_ns()), ns(std::llround(floor_ns))}));
  const auto& small = roofline.of(RooflineClass::kShort);
  finding.arithmetic.push_back(say("{} of it in calls shorter than 5 us", {ns(small.time_ns)}));
  rate_finding(facts, reachable, finding);
  if (dense)
    finding.arithmetic.push_back(say("at stake: what {} take beyond that", {text(dense)}));
  else if (reachable.calls() < found.calls())
    finding.arithmetic.push_back(
        say("not at stake: reads and additions at indices, which no kernel does at the full "
            "bandwidth"));
  if (is_at_indices) finding.kind = FindingKind::kWhere;
  finding.evidence.push_back(longest_of(facts, worst));
  const bool is_eager = launch_mode_of(facts) == LaunchMode::kEager;
  const char* singles = "see the rules few-blocks, slow-gemm and conv-layout for single kernels";
  if (dense)
    finding.try_next = {
        fmt::format("most of it is lost in {}: lanescope roofline shows each shape; of a slow one "
                    "look at its kernels, layout and types",
                    dense),
        singles};
  else if (is_at_indices)
    finding.try_next = {
        "most of it is lost in reads and additions at indices: sort the indices, add segments of "
        "sorted rows (segment_reduce), use 16 bits, or take fewer rows",
        singles};
  else if (is_of_long_calls)
    finding.try_next = {
        "most of it is lost in calls of 100 us and more, which have enough work: look for strided "
        "or scattered reads, additions into few places, and operators that make more than is used",
        singles};
  else
    finding.try_next = {
        is_eager ? words_for(facts,
                             "give each kernel more work: [if batch|a larger batch, "
                             "]fusion (torch.compile)")
                 : words_for(facts, "give each kernel more work[if batch|: a larger batch]"),
        singles};
  finding.brief = say("The GPU is busy, but computes at {} of what it can do",
                      {ratio(std::llround(floor_ns), found.time_ns())});
  finding.action = dense ? say("See which {} are slow: lanescope roofline TRACE", {text(dense)})
                   : is_at_indices ? say("Reads and additions at indices: sort the indices, use "
                                         "16-bit types, or take fewer rows")
                   : is_of_long_calls
                       ? say("Look for strided or scattered reads, and results that are too large")
                   : is_eager ? say(facts,
                                    "Give each kernel more work: [if batch|a larger batch, "
                                    "]torch.compile")
                              : say(facts, "Give each kernel more work[if batch|: a larger batch]");
  return finding;
}

}  // namespace

extern constinit const Rule no_roof_rule = {
    .id = "no-roof",
    .question = "is the GPU busy but far from what it can do?",
    .order = 590,
    .needs = {need::kGpuWork},
    .only_if = computes_nearly_always,
    .then_needs = {need::kShapes, need::kPeakRates},
    .run = measure_and_tell<measure_no_roof, tell_no_roof>,
    .covered_from = 0.6,
};

}  // namespace lanescope::explain::rules
