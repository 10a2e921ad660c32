#include "lanescope/explain/rules/operator_advice.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "lanescope/explain/rules/operator_advice_rows.h"
#include "lanescope/explain/rules/operator_inputs.h"

namespace lanescope::explain::rules {

using analysis::TensorArguments;

bool is_recurrent_cell(std::string_view op) {
  return op == "aten::lstm_cell" || op == "aten::gru_cell" || op == "aten::rnn_tanh_cell" ||
         op == "aten::rnn_relu_cell";
}

std::span<const OperatorAdvice> operator_advice() { return operator_advice_rows(); }

namespace {

// The first row that is not before this operator; rows are in order of operators.
std::span<const OperatorAdvice>::iterator first_row_of(std::string_view op) {
  const auto rows = operator_advice_rows();
  return std::lower_bound(
      rows.begin(), rows.end(), op,
      [](const OperatorAdvice& each, std::string_view wanted) { return each.op < wanted; });
}

// Does the program choose the next input of a cell from its result? Between this call and the next of
// its name something is chosen.
bool chooses_next_input(const Trace& trace, SliceId cell) {
  constexpr std::uint32_t kMostSlices = 1000;
  static constexpr std::array<std::string_view, 4> kChoices = {"aten::argmax", "aten::multinomial",
                                                               "aten::topk", "aten::sort"};
  const auto& slices = trace.slices();
  const auto end = static_cast<std::uint32_t>(
      std::min<std::size_t>(slices.size(), std::size_t{raw(cell)} + kMostSlices));
  for (std::uint32_t i = raw(cell) + 1; i < end && slices.track[i] == slices.track[raw(cell)];
       ++i) {
    if (trace.start_ns(SliceId{i}) < trace.end_ns(cell)) continue;
    if (slices.name[i] == slices.name[raw(cell)]) return false;
    if (std::find(kChoices.begin(), kChoices.end(), trace.name(SliceId{i})) != kChoices.end())
      return true;
  }
  return false;
}

}  // namespace

bool has_advice(std::string_view op) {
  const auto row = first_row_of(op);
  return row != operator_advice_rows().end() && row->op == op;
}

const OperatorAdvice* advice_for_call(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const std::string_view name = trace.name(op);
  const auto rows = operator_advice_rows();
  auto row = first_row_of(name);
  if (is_recurrent_cell(name) && chooses_next_input(trace, op)) return nullptr;
  std::optional<TensorArguments> inputs;
  for (; row != rows.end() && row->op == name; ++row) {
    if ((row->is_of_gpu && !facts.main_device) || (row->unless && row->unless(facts, op))) continue;
    if (!row->fits) return &*row;
    if (!inputs) inputs.emplace(operator_inputs(trace, op));
    if (row->fits(*inputs)) return &*row;
  }
  return nullptr;
}

}  // namespace lanescope::explain::rules
