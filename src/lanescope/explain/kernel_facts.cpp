#include "lanescope/explain/kernel_facts.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "lanescope/base/wide.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/rules/parsed_kernel_names.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain {

using analysis::DeviceWork;
using analysis::OperatorKind;
using analysis::WorkClass;

struct KernelFactsSlot {
  std::once_flag once;
  KernelFacts facts;
};

std::shared_ptr<KernelFactsSlot> make_kernel_facts_slot() {
  return std::make_shared<KernelFactsSlot>();
}

bool KernelCall::is_gemm() const {
  return work ? work->kind == OperatorKind::kGemm : name->kind == "gemm";
}
bool KernelCall::is_convolution() const {
  return work ? work->kind == OperatorKind::kConvolution : name->kind == "convolution";
}
bool KernelCall::is_attention() const {
  return work ? work->kind == OperatorKind::kAttention : name->kind == "attention";
}
std::string_view KernelCall::input_type() const {
  if (work) return work->type;
  return name->input_type.empty() ? name->accumulate_type : name->input_type;
}

std::optional<analysis::LaunchShape> KernelFacts::shape(const Trace& trace,
                                                        const KernelCall& kernel) const {
  // Only the operator's main kernel computes the operator's tiles.
  const bool is_main = kernel.call && kernel.call->kernel == kernel.slice;
  return analysis::compute_launch_shape(trace, kernel.slice, roofline.device, *kernel.name,
                                        is_main ? kernel.work : nullptr);
}

namespace {

void gather_kernels(const Facts& facts, KernelFacts& result) {
  const Trace& trace = *facts.trace;
  const auto& works = facts.device().timeline.work;
  const rules::KernelNames names(facts);
  std::unordered_map<std::uint32_t, analysis::MatrixUnits> units;
  std::int64_t latest_end = 0;  // of all work before
  bool any_before = false;
  for (std::size_t i = 0; i < works.size(); ++i) {
    const DeviceWork& work = works[i];
    const std::int64_t before = latest_end;
    const bool had_before = any_before;
    latest_end = any_before ? std::max(latest_end, work.end_ns) : work.end_ns;
    any_before = true;
    if (work.work != WorkClass::kCompute || !inside(facts.steady_windows, work.start_ns)) continue;
    KernelCall kernel;
    kernel.slice = work.slice;
    kernel.start_ns = work.start_ns;
    kernel.end_ns = work.end_ns;
    const StringId label = trace.slices().name[raw(work.slice)];
    const auto [unit, is_new] = units.try_emplace(raw(label));
    if (is_new) unit->second = analysis::matrix_units(trace.text(label));
    kernel.name = &names.of(work.slice);
    kernel.matrix_units = unit->second;
    kernel.op = facts.links.op_of[raw(work.slice)];
    if (const std::uint32_t call = result.roofline.call_of[i];
        call != analysis::Roofline::kNoCall) {
      kernel.call = &result.roofline.calls[call];
      kernel.work = &result.roofline.works[kernel.call->work];
    }
    const std::int64_t slack = kernel.dur_ns() / 10;
    const bool overlaps_before = had_before && before > work.start_ns + slack;
    const bool overlaps_next = i + 1 < works.size() && works[i + 1].start_ns < work.end_ns - slack;
    kernel.is_alone = !overlaps_before && !overlaps_next;
    result.kernels.push_back(kernel);
  }
}

}  // namespace

const KernelFacts& kernel_facts(const Facts& facts) {
  KernelFactsSlot& slot = *facts.kernels;
  std::call_once(slot.once, [&] {
    slot.facts.roofline = analysis::compute_roofline(*facts.trace, facts.links, facts.nesting,
                                                     facts.device().timeline, facts.steady_windows);
    gather_kernels(facts, slot.facts);
  });
  return slot.facts;
}

bool gemms_are_known(const KernelFacts& kernels) {
  std::int64_t all_ns = 0, known_ns = 0;
  for (const KernelCall& kernel : kernels.kernels) {
    if (!kernel.is_gemm()) continue;
    all_ns += kernel.dur_ns();
    known_ns += kernel.work ? kernel.dur_ns() : 0;
  }
  return known_ns * 2 >= all_ns;
}

void Savings::add(SliceId slice, std::int64_t start_ns, std::int64_t end_ns,
                  std::int64_t saved_ns) {
  wall_.add(start_ns, end_ns);
  ++calls_;
  saved_ns_ += std::clamp<std::int64_t>(saved_ns, 0, std::max<std::int64_t>(0, end_ns - start_ns));
  if (end_ns - start_ns > longest_ns_) {
    longest_ns_ = end_ns - start_ns;
    longest_ = slice;
  }
}

bool kernels_matter(const Facts& facts) {
  const auto& part = facts.wall.partition;
  return !rules::is_thin(facts) && wide(part.compute_ns) * 10 >= wide(part.wall_ns) * 3;
}

bool is_large_and_slow(const KernelCall& kernel) {
  const analysis::RooflineCall* call = kernel.call;
  return call && call->kernel == kernel.slice && call->kind == analysis::RooflineClass::kCompute &&
         kernel.is_alone && kernel.work->flops >= 1e9 && call->achieved_ratio() < 0.4;
}

bool kernels_decide(const Facts& facts) {
  return kernels_matter(facts) && !rules::is_host_bound(facts);
}

double wall_share(const Facts& facts, std::int64_t time_ns) {
  return rules::share_of(time_ns, facts.wall.partition.wall_ns);
}

std::int64_t on_path_ns(const Facts& facts, const Savings& savings) {
  const Owners* owners = step_owners(facts);
  if (!owners) return 0;
  std::int64_t time_ns = 0;
  for (const analysis::Window& window : owners->compute_windows)
    time_ns += savings.wall().length_within_ns(window.start_ns, window.end_ns);
  return std::min(time_ns, savings.time_ns());
}

Sentence only_on_path(const Facts& facts, std::int64_t path_ns) {
  return say(
      facts,
      "the GPU mostly waits for the CPU, but for {} [per step] these kernels are the critical "
      "path; only that time counts",
      {ns(facts.per_step(path_ns))});
}

namespace {

// A cost all the same where they are the critical path for a tenth of the steps or more: at the end of a step, the CPU may wait for
// all that it launched.
bool is_on_path(const Facts& facts, const Savings& savings, Finding& finding) {
  constexpr double kLeastOnPath = 0.1;
  const std::int64_t path_ns = on_path_ns(facts, savings);
  if (savings.time_ns() <= 0 || wall_share(facts, path_ns) < kLeastOnPath) return false;
  const auto saved_ns = static_cast<std::int64_t>(static_cast<double>(path_ns) *
                                                  static_cast<double>(savings.saved_ns()) /
                                                  static_cast<double>(savings.time_ns()));
  finding.gpu_saved_ns = finding.at_stake_ns;
  finding.at_stake_ns = facts.per_step(saved_ns);
  finding.at_stake_ratio = wall_share(facts, saved_ns);
  finding.arithmetic.push_back(only_on_path(facts, path_ns));
  return true;
}

}  // namespace

void rate_finding(const Facts& facts, const Savings& savings, Finding& finding) {
  const std::int64_t saved = std::min(savings.saved_ns(), facts.wall.partition.busy_ns());
  finding.at_stake_ns = facts.per_step(saved);
  finding.at_stake_ratio = wall_share(facts, saved);
  finding.confidence = facts.confidence();
  finding.sample_count = savings.calls();
  finding.sample_noun = "call";
  if (finding.kind != FindingKind::kCost || !rules::is_host_bound(facts) ||
      is_on_path(facts, savings, finding))
    return;
  finding.kind = FindingKind::kWhere;
  const std::int64_t path_ns = on_path_ns(facts, savings);
  if (path_ns * 4 <= savings.time_ns())
    finding.arithmetic.push_back(say(
        "the GPU mostly waits for the CPU: shorter kernels alone save hardly any of that time"));
  else
    finding.arithmetic.push_back(say(
        facts,
        "in the recording the GPU mostly waits for the CPU; for {} [per step] these kernels are "
        "the critical path",
        {ns(facts.per_step(path_ns))}));
}

Evidence longest_of(const Facts& facts, SliceId slice) {
  const SliceId op = facts.links.op_of[raw(slice)];
  if (op == kNone<SliceId>) return {slice, say("the longest of them")};
  return {slice, say("the longest of them, launched by {}", {name(facts.trace->name(op))})};
}

SliceId find_around(const Facts& facts, SliceId op, std::string_view name) {
  for (int i = 0; i < 8 && op != kNone<SliceId>; ++i) {
    if (facts.trace->name(op) == name) return op;
    op = facts.nesting.parent[raw(op)];
  }
  return kNone<SliceId>;
}

}  // namespace lanescope::explain
