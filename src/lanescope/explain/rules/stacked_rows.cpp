#include "lanescope/explain/rules/stacked_rows.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::uint64_t kFewestStackedRows = 8, kFewestOfARow = 3;

// The number of tensors of one shape that a call joins; 0: others, or not recorded.
std::uint64_t joined_rows(const Trace& trace, SliceId op) {
  if (trace.name(op) != "aten::stack" && trace.name(op) != "aten::cat") return 0;
  const std::vector<analysis::Sizes> shapes = first_input_shapes(trace, op);
  const bool are_equal =
      std::all_of(shapes.begin(), shapes.end(),
                  [&](const analysis::Sizes& each) { return each == shapes.front(); });
  return are_equal ? shapes.size() : 0;
}

// Does the call take a tensor of so many rows apart, all at once or one of them?
bool takes_row(const Trace& trace, SliceId op, std::uint64_t rows) {
  if (trace.name(op) != "aten::unbind" && trace.name(op) != "aten::select") return false;
  const auto tensor = operator_inputs(trace, op).tensor(0);
  return tensor && tensor->rank() >= 2 && tensor->dims.front() == static_cast<std::int64_t>(rows);
}

// Where the loop that ends at `end` begins; nothing: its rows are not those of a tensor.
std::optional<std::size_t> first_of_rows(const Trace& trace, const CallSequence& calls,
                                         std::size_t end, std::uint64_t rows) {
  std::uint64_t selected = 0;
  std::size_t first = end;
  for (std::size_t i = end; i-- > 0;) {
    if (joined_rows(trace, calls[i]) == rows) break;  // an earlier loop
    if (!takes_row(trace, calls[i], rows)) continue;
    if (trace.name(calls[i]) == "aten::unbind") return i;
    ++selected;
    first = i;
    if (selected == rows) return first;
  }
  return std::nullopt;
}

// torch records no shapes of a long list. Then its rows are those that were taken apart before, if one of the next calls takes
// a tensor of as many; 0: not known.
std::uint64_t rows_of_long_list(const Trace& trace, const CallSequence& calls, std::size_t at) {
  constexpr std::size_t kNextCalls = 8;
  if (trace.name(calls[at]) != "aten::stack" ||
      !trace.slice_args(calls[at]).has(ArgKey::kInputDims))
    return 0;
  for (std::size_t i = at; i-- > 0 && trace.name(calls[i]) != "aten::stack";) {
    if (trace.name(calls[i]) != "aten::unbind") continue;
    const auto taken = operator_inputs(trace, calls[i]).tensor(0);
    if (!taken || taken->rank() < 2) return 0;
    for (std::size_t k = at + 1; k < calls.size() && k <= at + kNextCalls; ++k)
      if (const auto read = operator_inputs(trace, calls[k]).tensor(0);
          read && read->rank() == taken->rank() && read->dims.front() == taken->dims.front())
        return static_cast<std::uint64_t>(taken->dims.front());
    return 0;
  }
  return 0;
}

std::vector<StackedRows> make_stacked_rows(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<StackedRows> found;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t end = 0; end < calls.size(); ++end) {
      std::uint64_t rows = joined_rows(trace, calls[end]);
      if (rows < 2)
        rows = rows_of_long_list(trace, calls, end);  // an empty list reads as one shape
      if (rows < kFewestStackedRows) continue;
      const auto first = first_of_rows(trace, calls, end, rows);
      if (!first || end - *first < kFewestOfARow * rows) continue;
      found.push_back(
          {rows, {trace.start_ns(calls[*first]), trace.start_ns(calls[end])}, calls[end]});
    }
  return found;
}

std::optional<StackedRows> make_rows_of_most_work(const Facts& facts) {
  const std::vector<StackedRows>& all = stacked_rows(facts);
  std::uint64_t pieces = 0, inside_loops = 0;
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    const SliceId call = facts.links.launch_of[raw(work->slice)];
    if (call == kNone<SliceId>) continue;
    ++pieces;
    const std::int64_t time = facts.trace->start_ns(call);
    if (std::any_of(all.begin(), all.end(), [&](const StackedRows& each) {
          return each.window.start_ns <= time && time < each.window.end_ns;
        }))
      ++inside_loops;
  }
  return pieces > 0 && inside_loops * 2 >= pieces ? std::optional(all.front()) : std::nullopt;
}

}  // namespace

const std::vector<StackedRows>& stacked_rows(const Facts& facts) {
  return made_once<make_stacked_rows>(facts);
}

const StackedRows* rows_of_most_work(const Facts& facts) {
  const auto& rows = made_once<make_rows_of_most_work>(facts);
  return rows ? &*rows : nullptr;
}

}  // namespace lanescope::explain::rules
