// addmm copies the matrix that it adds into its output before the GEMM adds to it.
#include <algorithm>
#include <optional>

#include "lanescope/base/wide.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::WorkClass;

namespace {

bool is_added_gemm(std::string_view op) {
  return op == "aten::addmm" || op == "aten::baddbmm" || op == "aten::addmm_" ||
         op == "aten::baddbmm_" || op == "aten::_addmm_activation";
}

bool is_batched(std::string_view op) { return op == "aten::baddbmm"; }

// The addmm for which this work copies, if the next work of its stream is the GEMM of that addmm.
SliceId prepared_gemm(const Facts& facts, const KernelFacts& kernels, std::size_t index) {
  const Trace& trace = *facts.trace;
  const DeviceWork& work = facts.device().timeline.work[index];
  SliceId op = facts.links.op_of[raw(work.slice)];
  if (op == kNone<SliceId>) return op;
  if (work.work == WorkClass::kCopy) {
    if (trace.name(work.slice).find("DtoD") == std::string_view::npos) return kNone<SliceId>;
  } else if (trace.name(op) != "aten::copy_") {
    return kNone<SliceId>;
  }
  if (trace.name(op) == "aten::copy_") op = facts.nesting.parent[raw(op)];
  if (op != kNone<SliceId> && trace.name(op) == "aten::expand") op = facts.nesting.parent[raw(op)];
  if (op == kNone<SliceId> || !is_added_gemm(trace.name(op))) return kNone<SliceId>;
  const std::uint32_t next = raw(work.slice) + 1;  // slices of a stream follow each other
  if (next >= trace.slices().size() ||
      trace.slices().track[next] != trace.slices().track[raw(work.slice)] ||
      facts.links.op_of[next] != op)
    return kNone<SliceId>;
  // If shapes are known, they must show that the copy fills the whole output.
  const std::uint32_t call = kernels.roofline.call_of[index];
  const auto size_bytes = trace.slice_args(work.slice).integer(ArgKey::kBytes);
  if (call == analysis::Roofline::kNoCall || kernels.roofline.calls[call].op != op || !size_bytes)
    return op;
  const auto& model = kernels.roofline.works[kernels.roofline.calls[call].work];
  if (!model.gemm) return op;
  const double elements = static_cast<double>(model.gemm->batch) *
                          static_cast<double>(model.gemm->m) * static_cast<double>(model.gemm->n);
  const double element_bytes = static_cast<double>(*size_bytes) / std::max(elements, 1.0);
  return element_bytes >= 1 && element_bytes <= 8 ? op : kNone<SliceId>;
}

// The matmul kernel that follows on the stream, of the same operator; kNone: none.
SliceId gemm_after(const Facts& facts, SliceId copy, SliceId op) {
  const Trace& trace = *facts.trace;
  constexpr std::uint32_t kFarthest = 4;  // a memset of the library's may lie between
  for (std::uint32_t next = raw(copy) + 1; next <= raw(copy) + kFarthest; ++next) {
    if (next >= trace.slices().size() ||
        trace.slices().track[next] != trace.slices().track[raw(copy)] ||
        facts.links.op_of[next] != op)
      return kNone<SliceId>;
    if (trace.kind(SliceId{next}) == CategoryKind::kKernel) return SliceId{next};
  }
  return kNone<SliceId>;
}

// What the matmul itself may lose because it reads the copied matrix: at most the time of the copy,
// which read and wrote as much, and at most its time beyond what its operations need.
std::int64_t slower_gemm_ns(const Facts& facts, const KernelFacts& kernels, std::size_t index,
                            SliceId op) {
  const DeviceWork& copy = facts.device().timeline.work[index];
  const SliceId gemm = gemm_after(facts, copy.slice, op);
  if (gemm == kNone<SliceId>) return 0;
  double floor_ns = 0;
  const std::uint32_t call = kernels.roofline.call_of[index];
  if (call != analysis::Roofline::kNoCall && kernels.roofline.calls[call].op == op)
    floor_ns = kernels.roofline.calls[call].compute_floor_ns;
  const std::int64_t above_ns = facts.trace->dur_ns(gemm) - static_cast<std::int64_t>(floor_ns);
  return std::clamp<std::int64_t>(above_ns, 0, copy.end_ns - copy.start_ns);
}

struct CopiesBeforeGemms {
  Savings copies;
  std::int64_t size_bytes = 0;
  std::int64_t slower_ns = 0;   // of the matmuls, without the copies, at most
  std::int64_t batched_ns = 0;  // of copies, the part in baddbmm, which takes no bias vector
  bool matters = false;
};

std::optional<CopiesBeforeGemms> measure_copy_before_gemm(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  const auto& works = facts.device().timeline.work;
  Savings copies;
  std::int64_t size_bytes = 0, slower_ns = 0, batched_ns = 0;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (works[i].work == WorkClass::kCommunication ||
        !inside(facts.steady_windows, works[i].start_ns))
      continue;
    const SliceId op = prepared_gemm(facts, kernels, i);
    if (op == kNone<SliceId>) continue;
    // Added in place, a matrix is still read by the matmul.
    if (is_batched(facts.trace->name(op)))
      batched_ns += works[i].end_ns - works[i].start_ns;
    else
      slower_ns += slower_gemm_ns(facts, kernels, i, op);
    copies.add(works[i].slice, works[i].start_ns, works[i].end_ns,
               works[i].end_ns - works[i].start_ns);
    size_bytes += facts.trace->slice_args(works[i].slice).integer(ArgKey::kBytes).value_or(0);
  }
  copies.finish();
  if (copies.calls() == 0) return std::nullopt;
  const bool matters = !is_host_bound(facts) && wall_share(facts, copies.time_ns()) >= 0.01;
  return CopiesBeforeGemms{.copies = std::move(copies),
                           .size_bytes = size_bytes,
                           .slower_ns = slower_ns,
                           .batched_ns = batched_ns,
                           .matters = matters};
}

Finding tell_copy_before_gemm(const Facts& facts, const CopiesBeforeGemms& found) {
  Finding finding;
  finding.kind = found.matters ? FindingKind::kCost : FindingKind::kNormal;
  finding.verdict =
      say(facts,
          "addmm copies a matrix before its matmul: {} [time|times] [in {} steps] it first "
          "copied the matrix that it adds into its output, {} [per step].",
          {count(found.copies.calls()), count(facts.selection.steady.size()),
           ns(facts.per_step(found.copies.time_ns()))});
  if (found.size_bytes > 0)
    finding.arithmetic.push_back(
        say("{} copied, in {}", {bytes(found.size_bytes), ns(found.copies.time_ns())}));
  rate_finding(facts, found.copies, finding);
  if (found.matters) {
    const std::int64_t saved_ns =
        std::min(found.copies.time_ns() + found.slower_ns, facts.wall.partition.busy_ns());
    finding.at_stake_ns = facts.per_step(saved_ns);
    finding.at_stake_ratio = wall_share(facts, saved_ns);
    if (found.slower_ns == 0)
      finding.arithmetic.push_back(
          say(facts, "copies {} [per step]; a matrix that is added in place is still read",
              {ns(facts.per_step(saved_ns))}));
    else
      finding.arithmetic.push_back(
          say(facts,
              "copies {} + reading the copied matrices in the matmuls at most {} = at most {} [per "
              "step]; the reading takes at most as long as the copy, and at most the time of the "
              "matmul beyond what its operations need",
              {ns(facts.per_step(found.copies.time_ns())), ns(facts.per_step(found.slower_ns)),
               ns(facts.per_step(saved_ns))}));
  }
  finding.evidence.push_back(longest_of(facts, found.copies.longest()));
  finding.try_next = {
      "use a contiguous bias of one dimension, as long as a row (as in nn.Linear): the matmul adds "
      "it without a copy",
      "or add in place, if the matrix is not needed afterwards: y.addmm_(a, b) copies nothing"};
  finding.explains.push_back({"exposed-copy", facts.per_step(found.copies.time_ns())});
  finding.brief = say(facts, "addmm copies the matrix that it adds, {} [time|times] [in {} steps]",
                      {count(found.copies.calls()), count(facts.selection.steady.size())});
  finding.action = say("Use a bias vector (as in nn.Linear), or add in place: y.addmm_(a, b)");
  if (wide(found.batched_ns) * 2 > found.copies.time_ns()) {
    finding.try_next = {
        "add in place, if the matrix is not needed afterwards (also not by autograd): "
        "y.baddbmm_(a, b) adds the products to y and copies nothing"};
    finding.brief =
        say(facts, "baddbmm copies the matrices that it adds, {} [time|times] [in {} steps]",
            {count(found.copies.calls()), count(facts.selection.steady.size())});
    finding.action = say("If the matrix is not needed afterwards, add in place: y.baddbmm_(a, b)");
  }
  return finding;
}

}  // namespace

extern constinit const Rule copy_before_gemm_rule = {
    .id = "copy-before-gemm",
    .question = "why is there a copy before the matmul?",
    .order = 480,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_copy_before_gemm, tell_copy_before_gemm>,
    .is_regression = true,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
