// Samples of a thread's Python stack become slices of a track of its own.
//
// A slice is a frame that was on the stack in a run of samples, with the same callers. It is not a
// call: two calls in neighbouring samples are one slice, and a call without a sample has none. So
// the slices have a category of their own, "python_sample", which no analysis takes for calls.
// Arguments: docs/formats/spool.md.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

struct SampleFrame {
  StringId function{};  // "file.py(first line): function"
  std::uint32_t line = 0;
};

// A run of equal samples. Times are nanoseconds.
struct SampleRun {
  std::int64_t first_ns = 0, last_ns = 0;
  std::int64_t period_ns = 0;  // mean distance of samples
  std::int64_t samples = 0, on_cpu = 0;
  bool cpu_known = false;
  // How many of `samples` found that the thread held the interpreter's lock while others waited for
  // it, and how many found it collecting garbage.
  std::int64_t others_waited = 0, collecting = 0;
  std::span<const SampleFrame> frames;  // outermost first
};

// One thread after another, each in order of time. Borrows the builder.
class SampleSlices {
 public:
  explicit SampleSlices(TraceBuilder& builder);
  // `name`: of the thread; empty: not known. `pid`: the recorded process, or a child of it.
  void begin_thread(const Scalar& pid, std::int64_t thread, std::string_view name);
  void add(const SampleRun& run);
  void end_thread();

 private:
  struct OpenFrame {
    std::size_t order = 0;  // in which slices began: callers before callees
    StringId function{};
    std::int64_t start_ns = 0, end_ns = 0, samples = 0, self = 0, on_cpu = 0, others_waited = 0,
                 collecting = 0;
    bool cpu_known = false;
    std::map<std::uint32_t, std::int64_t> lines;  // samples at each
  };
  void close_to(std::size_t depth, std::int64_t end_ns);
  void write_closed();
  void write(const OpenFrame& frame);

  TraceBuilder& builder_;
  CategoryId category_{};
  StringId samples_{}, self_{}, on_cpu_{}, lines_{}, others_waited_{}, collecting_{};
  TrackId track_{};
  std::int64_t last_ns_ = 0, end_ns_ = 0;
  std::vector<OpenFrame> open_, closed_;
  std::size_t begun_ = 0;
};

}  // namespace lanescope::format
