// Where the process that samples writes: one file, or one for each device in a folder that several
// recorded programs share.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/record_cupti/counter_writer.h"

namespace lanescope::record_cupti {

class CounterOutputs {
 public:
  // `path` ends with a slash: a folder that exists.
  CounterOutputs(std::string path, std::uint64_t most_bytes)
      : path_(std::move(path)), most_bytes_(most_bytes), is_shared_(path_.ends_with('/')) {}
  ~CounterOutputs();
  CounterOutputs(const CounterOutputs&) = delete;
  CounterOutputs& operator=(const CounterOutputs&) = delete;

  bool is_shared() const { return is_shared_; }
  // The file is made, or emptied. Null: it cannot be written, errno says why.
  CounterWriter* of(int device);
  void remove_files();
  // Also removes the files in it through which the programs share the sampler:
  // python/lanescope/_shared_hardware.py.
  void remove_folder();

 private:
  struct Output {
    std::string name;  // in the folder; empty: path_ is the file
    int file = -1;
    std::unique_ptr<CounterWriter> writer;
  };
  std::string path_;
  std::uint64_t most_bytes_;
  bool is_shared_;
  std::vector<Output> outputs_;
};

}  // namespace lanescope::record_cupti
