// Draws the slices that samples of Python stacks become in a trace.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/model/trace_builder.h"

namespace lanescope::testing {

struct SampledSlice {
  std::int64_t process = 100, thread = 100;
  std::string_view function = {};
  std::int64_t start_ns = 0, dur_ns = 0;
  std::int64_t samples = 0, self = 0;
  struct Count {
    std::string_view name;
    std::int64_t value;
  };
  std::vector<Count> counts = {};  // other counts of the slice
  std::string_view lines = {};     // samples by line, as JSON
};

// A slice on the track of the thread's samples.
inline void add_sampled_slice(TraceBuilder& builder, const SampledSlice& slice) {
  Scalar pid, tid;
  pid.number = slice.process;
  tid.is_text = true;
  tid.text = builder.intern(std::to_string(slice.thread) + " sampled");
  builder.args().begin();
  builder.args().add_int(builder.intern("Samples"), ArgKey::kSamples, slice.samples);
  builder.args().add_int(builder.intern("Self samples"), ArgKey::kSelfSamples, slice.self);
  for (const auto& [name, value] : slice.counts)
    builder.args().add_int(builder.intern(name), ArgKey::kCount, value);
  if (!slice.lines.empty())
    builder.args().add_json(builder.intern("Lines"), ArgKey::kSampleLines,
                            builder.intern(slice.lines));
  const ArgsId args = builder.args().end();
  builder.add_slice(builder.thread_track(pid, tid), builder.category("python_sample"),
                    builder.intern(slice.function), slice.start_ns, slice.dur_ns, args);
}

}  // namespace lanescope::testing
