// A thread of ours that samples the Python stacks of this process into the recording.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/sample/python_layout.h"

namespace lanescope::sample {

struct SamplerOptions {
  std::uint32_t per_second = 1000;  // 1 to 10,000, on average: the intervals are random
  PythonLayout layout;
  std::uint64_t runtime = 0, interpreter = 0, code_type = 0;  // addresses in this process
  std::vector<std::string> prefixes;                          // of file names, to be left out
};
inline constexpr std::uint32_t kMostSamplesPerSecond = 10'000;

// One at a time in a process. The sampled threads never wait for it: it takes no lock of the
// interpreter and stops nothing. Of the recorder's locks it takes the one for new texts, as every
// recording thread does. Samples are written while a window is open; between windows it sleeps.
// Python processes that this one starts are sampled, too (child_samples.h). The recording says what
// sampling cost and lost ("lanescope_python_samples", docs/formats/spool.md), and how often threads
// held the interpreter's lock and waited for it ("lanescope_python_lock").
//
// kInvalidArgument: the rate. kUnavailable: one runs already, or there is no memory for a thread.
Result<void> start_sampler(const SamplerOptions& options);
// Writes the samples that are not written yet. Call it before a window closes. At most about 0.2 s.
void flush_samples() noexcept;
// Stacks that the running sampler has taken; 0: none runs.
std::uint64_t samples_taken() noexcept;
// The same for child processes (child_samples.h).
std::uint64_t child_samples_taken() noexcept;
// Flushes and ends it. Does nothing when none runs. In a forked child none runs.
void stop_sampler() noexcept;

}  // namespace lanescope::sample
