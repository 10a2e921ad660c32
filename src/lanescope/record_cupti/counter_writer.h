// Writes the file of hardware counters, codec/counter_file.h, in whole blocks.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "lanescope/codec/counter_file.h"

namespace lanescope::record_cupti {

// Any thread. Does not own the file.
class CounterWriter {
 public:
  // Writes the file's head. It names the parent of this process as the recorded process.
  CounterWriter(int file, std::uint64_t most_bytes);
  // False: the file has no room for the block. A block of kind kLosses may exceed `most_bytes`.
  bool write(counters::BlockHead head, std::string_view payload);
  bool is_full() const { return full_; }

 private:
  bool put(const void* bytes, std::size_t size);

  int file_;
  std::uint64_t most_bytes_;
  std::mutex mutex_;
  std::uint64_t bytes_ = 0;  // guarded by mutex_
  std::atomic<bool> full_{false};
};

}  // namespace lanescope::record_cupti
