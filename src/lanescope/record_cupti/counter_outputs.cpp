#include "lanescope/record_cupti/counter_outputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "lanescope/codec/counter_file.h"

namespace lanescope::record_cupti {

CounterOutputs::~CounterOutputs() {
  for (const Output& output : outputs_) ::close(output.file);
}

CounterWriter* CounterOutputs::of(int device) {
  if (!is_shared_ && !outputs_.empty()) return outputs_.front().writer.get();
  const std::string name =
      is_shared_ ? std::to_string(device) + std::string(counters::kEnding) : "";
  const int file = ::open((path_ + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return nullptr;
  outputs_.push_back({name, file, std::make_unique<CounterWriter>(file, most_bytes_)});
  return outputs_.back().writer.get();
}

void CounterOutputs::remove_files() {
  for (const Output& output : outputs_) ::unlink((path_ + output.name).c_str());
}

void CounterOutputs::remove_folder() {
  // At once, so that programs that meet there next do not find half of it.
  const std::string folder = path_.substr(0, path_.size() - 1), ended = folder + ".ended";
  if (std::rename(folder.c_str(), ended.c_str()) == 0) path_ = ended + "/";
  remove_files();
  for (const char* name : {"input", "state", "lock"}) ::unlink((path_ + name).c_str());
  ::rmdir(path_.c_str());
}

}  // namespace lanescope::record_cupti
