// What samples from outside show of the interpreter's lock (GIL) and of garbage collection.
// docs/definitions/python_samples.md#gil.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/sample/gil_reader.h"
#include "lanescope/sample/stack_reader.h"

namespace lanescope::cli {

class LockShares {
 public:
  // One moment: the lock and, read right after it, the stacks.
  void add(const std::optional<sample::GilState>& state,
           const std::vector<sample::SampledStack>& stacks, const sample::StackReader& reader);

  // One line each, without "\n". None with fewer than 30 moments.
  std::vector<std::string> lines() const;
  // For the trace's metadata, `lanescope_python_lock`.
  std::string json() const;

 private:
  struct Holder {
    std::uint64_t times = 0;
    std::map<std::string, std::uint64_t> functions;  // the innermost one
  };
  bool knows_waiters_ = false;
  std::uint64_t times_ = 0, held_ = 0, waited_ = 0, waiting_ = 0, collecting_ = 0;
  std::map<std::uint64_t, Holder> holders_;            // by thread, while others waited
  std::map<std::string, std::uint64_t> collected_in_;  // the holder's innermost function
};

}  // namespace lanescope::cli
