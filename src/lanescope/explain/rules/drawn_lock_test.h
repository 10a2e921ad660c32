// Samples with the interpreter's lock, for the tests of the rules about it.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

struct LockSamples {
  std::int64_t thread = 100;
  const char* function = "train.py(1): step";
  std::int64_t self = 0, others_waited = 0, collecting = 0;
};

// Over the whole program, which is 30 ms long.
inline void sampled(testing::ProgramSketch& program, const LockSamples& samples) {
  TraceBuilder& builder = program.sketch().builder();
  Scalar pid, tid;
  pid.number = 100;
  tid.is_text = true;
  tid.text = builder.intern(std::to_string(samples.thread) + " sampled");
  builder.args().begin();
  builder.args().add_int(builder.intern("Samples"), ArgKey::kSamples, samples.self);
  builder.args().add_int(builder.intern("Self samples"), ArgKey::kSelfSamples, samples.self);
  builder.args().add_int(builder.intern("Others waited for the GIL samples"), ArgKey::kCount,
                         samples.others_waited);
  builder.args().add_int(builder.intern("Collecting garbage samples"), ArgKey::kCount,
                         samples.collecting);
  const ArgsId args = builder.args().end();
  builder.add_slice(builder.thread_track(pid, tid), builder.category("python_sample"),
                    builder.intern(samples.function), 0, us(30'000), args);
}

// Four steps of 6 ms, of which the last three are steady.
inline Trace draw_lock(std::initializer_list<LockSamples> all) {
  testing::ProgramSketch program = loop(4, 2, {.us = 100}, 3000);
  for (const LockSamples& samples : all) sampled(program, samples);
  program.sketch().builder().add_metadata("lanescope_python_lock", "{}");
  return program.trace();
}

}  // namespace lanescope::explain
