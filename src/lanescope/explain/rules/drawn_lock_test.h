// Samples with the interpreter's lock, for the tests of the rules about it.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/testing/sampled_slice.h"

namespace lanescope::explain {

struct LockSamples {
  std::int64_t thread = 100;
  const char* function = "train.py(1): step";
  std::int64_t self = 0, others_waited = 0, collecting = 0;
};

// Over the whole program, which is 30 ms long.
inline void sampled(testing::ProgramSketch& program, const LockSamples& samples) {
  testing::add_sampled_slice(
      program.sketch().builder(),
      {.thread = samples.thread,
       .function = samples.function,
       .dur_ns = us(30'000),
       .samples = samples.self,
       .self = samples.self,
       .counts = {{"Others waited for the GIL samples", samples.others_waited},
                  {"Collecting garbage samples", samples.collecting}}});
}

// Four steps of 6 ms, of which the last three are steady.
inline Trace draw_lock(std::initializer_list<LockSamples> all) {
  testing::ProgramSketch program = loop(4, 2, {.us = 100}, 3000);
  for (const LockSamples& samples : all) sampled(program, samples);
  program.sketch().builder().add_metadata("lanescope_python_lock", "{}");
  return program.trace();
}

}  // namespace lanescope::explain
