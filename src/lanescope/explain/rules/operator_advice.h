// Operators that cost more than their users expect, and what does the same with less: data, one row
// an operator. docs/rules/costly-operator.md lists them.
#pragma once
#include <span>
#include <string_view>

#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct OperatorAdvice {
  std::string_view op;      // "aten::randperm"
  std::string_view kernel;  // only where a kernel with this in its name runs; empty: any, or none
  std::string_view unless_in;  // not inside an operator that begins so; empty: anywhere
  int least_calls;             // in a step: fewer are usual
  const char* meaning;         // "{} <meaning>": what the operator does
  const char* action;          // one line: what to change
  const char* more;            // the same, longer, with the case in which it is right as it is
  const char* source;          // where this is documented
  // The row is only for calls whose recorded inputs fit; null: for any call.
  bool (*fits)(const analysis::TensorArguments& inputs) = nullptr;
  // The row is not for calls for which this is true; null: for any call.
  bool (*unless)(const Facts& facts, SliceId op) = nullptr;
  // Only that kernel's work is the cost, and the calls that launch it; false: all of the operator.
  bool is_kernel_only = false;
  bool is_of_gpu = false;  // not where the operator runs on the CPU
  // A rule that would advise something else about the same calls: the row's finding replaces its finding.
  const char* covers = nullptr;
  bool is_of_one_matrix = false;  // the finding says how often, and whether sizes are the same
};

// aten::lstm_cell and others: one time step of a recurrent layer. Each call needs the state that the one before it left.
bool is_recurrent_cell(std::string_view op);

// Sorted by operator. Rows for certain inputs come before the operator's row for all inputs.
std::span<const OperatorAdvice> operator_advice();

// The first row that fits this call of an operator; null: none. O(log rows), and linear in the
// texts of its inputs if a row asks for them.
const OperatorAdvice* advice_for_call(const Facts& facts, SliceId op);

}  // namespace lanescope::explain::rules
