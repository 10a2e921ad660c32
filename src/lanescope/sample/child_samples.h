// Samples of the Python processes that the recorded process started, such as workers of a DataLoader.
//
// Problem: another process makes a late batch, so the training process does not show the cause. Idea: the thread that samples
// this process also reads those processes from outside, as `lanescope sample --pid` does; nothing
// runs in them. Each time it samples its own process, it also samples one of the others, one after
// another. So the cost does not grow with their number, but each has fewer samples.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lanescope/sample/python_layout.h"
#include "lanescope/sample/sample_runs.h"

namespace lanescope::sample {

// One thread uses it; only taken() may be called from any thread.
class ChildSamples {
 public:
  static constexpr std::size_t kMostChildren = 256;

  struct Counts {
    std::uint64_t processes = 0;   // that had at least one stack
    std::uint64_t stacks = 0;      // samples taken
    std::uint64_t torn = 0;        // stacks that were dropped, because they were not whole
    std::uint64_t unreadable = 0;  // processes with a Python that cannot be read
  };

  // The interpreter of this process. In a forked child it is at the same address.
  struct Own {
    PythonLayout layout;
    std::uint64_t interpreter = 0, code_type = 0;
    std::uint64_t runtime = 0;
  };

  // `period`: mean time between calls of take(). `prefixes`: of files whose frames are left out.
  ChildSamples(const Own& own, std::chrono::nanoseconds period, std::vector<std::string> prefixes);
  ~ChildSamples();

  // Samples the next child. Looks for children first, if that was a while ago.
  void take(const SampleTime& time);
  void write_all();
  void forget();
  Counts counts() const;
  // Samples so far, from any thread.
  std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  struct Child;
  void find(std::int64_t now_ns);
  void attach(Child& child);
  void attach_again(Child& child);
  void end(Child& child);

  const Own own_;
  const std::chrono::nanoseconds period_;
  const std::vector<std::string> prefixes_;
  std::unordered_map<pid_t, std::unique_ptr<Child>> known_;
  std::vector<Child*> read_;  // those of them that are sampled
  std::size_t next_ = 0;
  std::int64_t find_at_ns_ = 0;
  Counts counts_;  // of children that have ended
  std::atomic<std::uint64_t> taken_{0};
};

}  // namespace lanescope::sample
