// The files into which the sampling process writes hardware counters: one file, or a folder with one
// file for each device. Several recorded programs may share the folder.
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
  // `path` is the file. If it ends with a slash, it is a folder that exists.
  CounterOutputs(std::string path, std::uint64_t most_bytes)
      : path_(std::move(path)), most_bytes_(most_bytes), is_shared_(path_.ends_with('/')) {}
  ~CounterOutputs();
  CounterOutputs(const CounterOutputs&) = delete;
  CounterOutputs& operator=(const CounterOutputs&) = delete;

  bool is_shared() const { return is_shared_; }
  // The writer for a device. Makes or empties the device's file; a single file only in the first call.
  // Null: the file cannot be written, and errno says why.
  CounterWriter* of(int device);
  void remove_files();
  // Removes the folder with these files, and with those through which the programs share the sampler
  // (python/lanescope/_shared_hardware.py).
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
