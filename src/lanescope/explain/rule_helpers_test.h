// For the tests of rules: asks one rule of a trace, draws an even loop.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lanescope/explain/run_rules.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::explain {

inline constexpr std::int64_t us(std::int64_t value) { return value * 1000; }  // in ns

// What the rule found; none: it stayed quiet, or did not check.
inline std::optional<Finding> find_by_rule(const Trace& trace, const std::string& rule) {
  const auto facts = gather_facts(trace);
  EXPECT_TRUE(facts);
  const auto explanation = run_rules(*facts, {.only = {rule}, .off = {}});
  EXPECT_TRUE(explanation);
  if (!explanation || explanation->findings.empty()) return std::nullopt;
  return explanation->findings.front();
}

inline RuleRun::State state_of_rule(const Trace& trace, const std::string& rule) {
  const auto facts = gather_facts(trace);
  return run_rules(*facts, {.only = {rule}, .off = {}})->runs.at(0).state;
}

// `steps` steps of `launches` launches of `work`, with `cpu_us` of CPU work before each launch.
inline testing::ProgramSketch loop(int steps, int launches,
                                   const testing::ProgramSketch::Work& work,
                                   std::int64_t cpu_us = 0) {
  testing::ProgramSketch program;
  for (int i = 0; i < steps; ++i) {
    program.step();
    for (int k = 0; k < launches; ++k) program.pass(cpu_us).launch(work);
    program.end();
  }
  return program;
}

inline constexpr char kElementwise[] =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";

}  // namespace lanescope::explain
