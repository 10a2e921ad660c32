// Steps with one operator of the table of costly operators.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

using testing::ProgramSketch;

// A step of a GPU that is always busy: `op` with a kernel of `us`, then a product of 100 us.
inline Trace step_with(std::string_view op, std::int64_t us, std::string_view kernel = "radix_sort",
                       std::string_view around = {}, int calls = 1) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    for (int i = 0; i < calls; ++i) {
      if (!around.empty()) p.begin_op(around);
      p.begin_op(op).kernel(kernel, us).end();
      if (!around.empty()) p.end();
    }
    p.begin_op("aten::mm").kernel("gemm", 100).end();
  });
  return program.trace();
}

// The same, with what torch records of its inputs.
inline Trace step_with_inputs(std::string_view op, const testing::Fields& inputs, int calls = 1) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    for (int i = 0; i < calls; ++i) p.begin_op(op, inputs).kernel("k", 300).end();
    p.begin_op("aten::mm").kernel("gemm", 100).end();
  });
  return program.trace();
}

inline std::string action_of(const Trace& trace) {
  const auto finding = find_by_rule(trace, "costly-operator");
  return finding ? finding->action.pattern : "";
}

inline testing::Fields inputs(std::string dims, std::string types, std::string strides,
                              std::string concrete) {
  testing::Fields fields;
  fields.input_dims = std::move(dims);
  fields.input_types = std::move(types);
  fields.input_strides = std::move(strides);
  fields.concrete_inputs = std::move(concrete);
  return fields;
}

// 20 us of a call and 300 us of the one after it.
inline std::string after(const char* before, const testing::Fields& its, const char* op,
                         const testing::Fields& inputs_of_op) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op(before, its).kernel("k", 20).end();
    p.begin_op(op, inputs_of_op).kernel("gemm", 300).end();
  });
  return action_of(program.trace());
}

// 300 us of a call and 10 us of the one after it, with 100 us of other work.
inline std::string action_before(const char* op, const testing::Fields& call, const char* next_op,
                                 const testing::Fields& next, const char* later_op = "aten::mm",
                                 const testing::Fields& later = {}) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op(op, call).kernel("k", 300).end();
    p.begin_op(next_op, next).kernel("k2", 10).end();
    p.begin_op(later_op, later).kernel("gemm", 100).end();
  });
  return action_of(program.trace());
}

}  // namespace lanescope::explain
