#include "lanescope/explain/rules/backward_passes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/names/collective_calls.h"

namespace lanescope::explain::rules {
namespace {

class PassReader {
 public:
  explicit PassReader(const Trace& trace) : trace_(trace) {}

  void add_node(std::size_t step, SliceId node) {
    const std::uint32_t thread = raw(trace_.slices().track[raw(node)]);
    const std::int64_t number =
        trace_.slice_args(node).integer(ArgKey::kSequenceNumber).value_or(-1);
    const bool has_number = number >= 0 && !is_accumulating_node(trace_.name(node));
    const auto [open, is_new] = open_.try_emplace(thread, 0);
    auto& last = last_[thread];
    if (is_new || passes_[open->second].step != step || (has_number && number > last)) {
      open->second = passes_.size();
      passes_.push_back({.step = step, .thread = thread, .nodes = {}, .gradients = {}});
    }
    if (has_number) last = number;
    passes_[open->second].nodes.push_back(node);
  }

  void add_gradient(std::size_t step, SliceId op) {
    const auto open = open_.find(raw(trace_.slices().track[raw(op)]));
    if (open == open_.end() || passes_[open->second].step != step) return;
    std::vector<analysis::Sizes> shapes = first_input_shapes(trace_, op);
    BackwardPass& pass = passes_[open->second];
    if (shapes.size() == 1)
      pass.gradients.emplace_back(pass.nodes.size() - 1, std::move(shapes.front()));
  }

  std::vector<BackwardPass> take() { return std::move(passes_); }

 private:
  const Trace& trace_;
  std::vector<BackwardPass> passes_;
  std::map<std::uint32_t, std::size_t> open_;   // by thread: the index of its last pass
  std::map<std::uint32_t, std::int64_t> last_;  // by thread: the last number
};

std::vector<BackwardPass> make_backward_passes(const Facts& facts) {
  const Trace& trace = *facts.trace;
  PassReader reader(trace);
  const auto is_of_backward = [](std::string_view name) {
    return name.starts_with(kEvaluateNode) || name == "torch::autograd::AccumulateGrad";
  };
  for (const SliceId id : slices_named(facts, is_of_backward)) {  // of a thread in order of start
    if (trace.kind(id) != CategoryKind::kCpuOp) continue;
    const bool is_node = trace.name(id).starts_with(kEvaluateNode);
    const std::size_t step = steady_step_at(facts, trace.start_ns(id));
    if (step == ~std::size_t{0}) continue;
    if (is_node)
      reader.add_node(step, id);
    else
      reader.add_gradient(step, id);
  }
  std::vector<BackwardPass> passes = reader.take();  // thread by thread
  sort_rows(passes.begin(), passes.end(), [&](const BackwardPass& a, const BackwardPass& b) {
    return trace.start_ns(a.nodes.front()) < trace.start_ns(b.nodes.front());
  });
  return passes;
}

}  // namespace

const std::vector<BackwardPass>& backward_passes(const Facts& facts) {
  return made_once<make_backward_passes>(facts);
}

Accumulated accumulated_in(const Facts& facts, const BackwardPass& pass) {
  Accumulated found;
  for (std::size_t n = 0; n < pass.nodes.size(); ++n) {
    if (!is_accumulating_node(facts.trace->name(pass.nodes[n]))) continue;
    found.all.push_back(n);
    if (any_inside(facts, pass.nodes[n],
                   [](std::string_view name) { return name.starts_with("aten::add"); }))
      found.added.push_back(n);
  }
  return found;
}

bool clears_by_zeros(const Facts& facts) {
  const auto is_zeroing = [](std::string_view name) {
    return name == "aten::zero_" || name == "aten::_foreach_zero_";
  };
  const std::vector<SliceId> calls = slices_named(facts, is_zeroing);
  return std::any_of(calls.begin(), calls.end(), [&](SliceId call) {
    return facts.trace->kind(call) == CategoryKind::kCpuOp &&
           ancestor_where(facts, call, [](std::string_view name) {
             return name.find("zero_grad") != std::string_view::npos;
           }) != kNone<SliceId>;
  });
}

std::vector<analysis::Sizes> first_input_shapes(const Trace& trace, SliceId op) {
  const auto dims = trace.slice_args(op).text(ArgKey::kInputDims);
  const auto inputs = dims ? parse_json(trace.text(*dims)) : std::nullopt;
  if (!inputs || !inputs->is_array() || inputs->items.empty()) return {};
  const JsonValue& first = inputs->items.front();
  if (auto one = analysis::sizes_of(first)) return {*std::move(one)};
  std::vector<analysis::Sizes> shapes;
  if (first.is_array())
    for (const JsonValue& each : first.items)
      if (auto shape = analysis::sizes_of(each)) shapes.push_back(*std::move(shape));
  return shapes;
}

std::vector<analysis::Sizes> input_shapes(const Trace& trace, SliceId op) {
  const auto dims = trace.slice_args(op).text(ArgKey::kInputDims);
  const auto inputs = dims ? parse_json(trace.text(*dims)) : std::nullopt;
  std::vector<analysis::Sizes> shapes;
  if (!inputs || !inputs->is_array()) return shapes;
  for (const JsonValue& each : inputs->items)
    if (auto shape = analysis::sizes_of(each); shape && !shape->empty())
      shapes.push_back(*std::move(shape));
  return shapes;
}

namespace {

bool make_has_collectives(const Facts& facts) {
  const auto is_collective = [](std::string_view name) {
    return names::is_collective_call(name) || name.starts_with("nccl");  // or a kernel
  };
  return !slices_named(facts, is_collective).empty();
}

}  // namespace

bool has_collectives(const Facts& facts) { return made_once<make_has_collectives>(facts); }

}  // namespace lanescope::explain::rules
