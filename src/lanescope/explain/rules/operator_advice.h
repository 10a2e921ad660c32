// Operators that cost more than their users expect, and what does the same with less: data, one row
// an operator. docs/rules/costly-operator.md lists them.
#pragma once
#include <span>
#include <string_view>

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
};

// By operator.
std::span<const OperatorAdvice> operator_advice();

}  // namespace lanescope::explain::rules
