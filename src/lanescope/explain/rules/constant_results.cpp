#include "lanescope/explain/rules/constant_results.h"

#include <algorithm>
#include <utility>

#include "lanescope/explain/rules/operator_results.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {
namespace {

using analysis::Sizes;

constexpr std::size_t kMostCalls = 256;   // of a run
constexpr std::size_t kMostTensors = 64;  // of a call

class RunFinder {
 public:
  explicit RunFinder(const Facts& facts) : trace_(*facts.trace) {}

  void add(SliceId op, std::size_t step) {
    const ResultKind kind = result_kind(trace_.name(op));
    if (kind == ResultKind::kOther) return close();
    const bool is_source =
        kind == ResultKind::kSeries || kind == ResultKind::kFill || kind == ResultKind::kFillLike;
    if (!is_source && run_.calls.empty()) return;  // most operators: their inputs are not read
    const auto inputs = taken_tensors(trace_, op);
    if (!inputs || inputs->tensors.size() > kMostTensors) return close();
    if (is_source && kind != ResultKind::kFillLike && !inputs->tensors.empty()) return close();
    if (!is_source && !are_made_here(*inputs)) return close();
    auto size = result_size(trace_, op, kind, *inputs);
    if (!size) return close();
    if (run_.calls.size() == kMostCalls) close();
    run_.step = step;
    run_.calls.push_back(op);
    run_.has_counter = run_.has_counter || inputs->has_counter;
    is_worth_keeping_ =
        is_worth_keeping_ || kind == ResultKind::kSeries || kind == ResultKind::kShape;
    made_.push_back({std::move(*size), kind == ResultKind::kFill || kind == ResultKind::kFillLike});
    const ArgsView args = trace_.slice_args(op);
    run_.symbol.push_back(raw(trace_.slices().name[raw(op)]));
    for (const ArgKey key : {ArgKey::kInputDims, ArgKey::kInputType, ArgKey::kConcreteInputs})
      run_.symbol.push_back(raw(args.text(key).value_or(kNone<StringId>)));
  }

  void close() {
    if (is_worth_keeping_) runs_.push_back(std::move(run_));
    run_ = {};
    made_.clear();
    is_worth_keeping_ = false;
  }

  std::vector<ConstantRun> runs() { return std::move(runs_); }

 private:
  struct Made {
    Sizes size;
    bool is_fill;
  };
  // If a call takes two tensors of one shape, two such tensors must have been made here; else one
  // may be the program's. Filled ones do not count: programs keep state in them.
  bool are_made_here(const TakenTensors& inputs) const {
    if (inputs.tensors.empty()) return false;
    for (const Sizes& wanted : inputs.tensors) {
      const auto taken = std::count(inputs.tensors.begin(), inputs.tensors.end(), wanted);
      const auto made = std::count_if(made_.begin(), made_.end(), [&](const Made& each) {
        return each.size == wanted && (taken == 1 || !each.is_fill);
      });
      if (made == 0 || (made < taken && !inputs.is_list)) return false;
    }
    return true;
  }

  const Trace& trace_;
  ConstantRun run_;
  std::vector<Made> made_;
  bool is_worth_keeping_ = false;
  std::vector<ConstantRun> runs_;
};

}  // namespace

std::vector<ConstantRun> constant_runs(const Facts& facts) {
  RunFinder finder(facts);
  for (const CallSequence& sequence : call_sequences(facts)) {
    for (const SliceId op : sequence)
      finder.add(op, steady_step_at(facts, facts.trace->start_ns(op)));
    finder.close();
  }
  return finder.runs();
}

}  // namespace lanescope::explain::rules
