// A table of operators that cost more than their users expect, and of cheaper ways to the same result.
// docs/rules/costly-operator.md lists them.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct OperatorAdvice {
  std::string_view op;         // "aten::randperm"
  std::string_view kernel;     // a kernel of the call must have this in its name; empty: no limit
  std::string_view unless_in;  // not inside an operator whose name begins so; empty: anywhere
  int least_calls;             // per step; fewer are usual
  const char* meaning;         // "{} <meaning>": what the operator does
  const char* action;          // one line: what to change
  const char* more;            // the same in more words, and when the code is right as it is
  const char* source;          // where this is documented
  // The row is only for calls whose recorded inputs fit; null: for any call.
  bool (*fits)(const analysis::TensorArguments& inputs) = nullptr;
  // The row is not for calls for which this is true; null: for any call.
  bool (*unless)(const Facts& facts, SliceId op) = nullptr;
  // True: the cost is the work of `kernel` and the calls that launch it. False: the whole operator.
  bool is_kernel_only = false;
  bool is_of_gpu = false;  // not for calls that run on the CPU
  // A rule that would give other advice on the same calls. The finding of this row replaces that rule's finding.
  const char* covers = nullptr;
  bool is_of_one_matrix = false;  // the finding says how often it is called and if sizes are equal
  // An operator inside of these calls that what replaces them needs, too: its time is not at stake. Empty: none.
  std::string_view keeps = {};
  // The nodes of the backward pass that these calls made count, too: what replaces the calls has a backward part of its own.
  bool has_backward = false;
  // Other calls that what replaces this one spares, too. Their time, and that of the nodes of autograd that all made, is at stake with
  // this one's. Null: only the call itself.
  std::vector<SliceId> (*spares_too)(const Facts& facts, SliceId op) = nullptr;
  // What replaces the calls takes many inputs at once: the finding says so where a loop goes over inputs (rounds_of_inputs()).
  bool takes_all_inputs = false;
  // Works on a matrix of a graph or the like, which may be kept if it does not change. What else its function computes may be kept
  // with it (calls_of_kept_function()).
  bool is_of_kept_matrix = false;
};

// aten::lstm_cell and others: one time step of a recurrent layer. Each call needs the state that the call before it computed.
bool is_recurrent_cell(std::string_view op);

// Sorted by operator. Rows for certain inputs come before the operator's row for all inputs.
std::span<const OperatorAdvice> operator_advice();

bool has_advice(std::string_view op);  // True: a row has this name. O(log rows).

// The first row that fits this call of an operator; null: none. O(log rows), and linear in the
// text of the call's inputs if a row checks them.
const OperatorAdvice* advice_for_call(const Facts& facts, SliceId op);

}  // namespace lanescope::explain::rules
