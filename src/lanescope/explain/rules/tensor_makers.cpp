#include "lanescope/explain/rules/tensor_makers.h"

#include <algorithm>
#include <string_view>

#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::TensorArguments;

namespace {

constexpr double kFastestBytesPerNs = 10'000;  // more than any memory writes

}  // namespace

TensorMakers::TensorMakers(const Facts& facts) : facts_(facts) {
  const Trace& trace = *facts.trace;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kCpuOp &&
        outermost_around(facts, SliceId{i}) == SliceId{i})
      operators_.push_back(SliceId{i});
  if (!facts.main_device) return;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId op = outermost_operator_of(facts, work.slice);
    if (op == kNone<SliceId>)
      longest_outside_ns_ = std::max(longest_outside_ns_, work.end_ns - work.start_ns);
    else
      work_ns_[raw(op)] += work.end_ns - work.start_ns;
  }
}

std::int64_t TensorMakers::work_ns(SliceId op) const {
  if (!facts_.main_device) return facts_.trace->dur_ns(op);
  const auto found = work_ns_.find(raw(op));
  return found == work_ns_.end() ? 0 : found->second;
}

bool TensorMakers::may_be_made_outside(double bytes) const {
  return static_cast<double>(longest_outside_ns_) >= bytes / kFastestBytesPerNs;
}

bool TensorMakers::may_make(SliceId op, double elements, double bytes) const {
  const std::string_view name = facts_.trace->name(op);
  if (name != "aten::reshape" && (is_view(name) || name == "aten::detach")) return false;
  if (static_cast<double>(work_ns(op)) < bytes / kFastestBytesPerNs) return false;
  const TensorArguments inputs = operator_inputs(*facts_.trace, op);
  const auto first = inputs.tensor(0);
  if (name.ends_with('_') && first) return first->elements() >= elements;
  if (const auto made = made_size(name, inputs)) return analysis::element_count(*made) >= elements;
  if (first && (keeps_size(name) || name == "aten::to" || name == "aten::clone" ||
                name == "aten::contiguous" || name == "aten::reshape"))
    return first->elements() >= elements;
  if (const auto taken = taken_of(name, inputs, 0)) return taken->elements >= elements;
  return true;
}

}  // namespace lanescope::explain::rules
