#include "lanescope/record_cupti/counter_outputs.h"

#include <fcntl.h>
#include <unistd.h>

#include "lanescope/codec/counter_file.h"

namespace lanescope::record_cupti {

CounterOutputs::~CounterOutputs() {
  for (const Output& output : outputs_) ::close(output.file);
}

CounterWriter* CounterOutputs::of(int device) {
  if (!is_shared_ && !outputs_.empty()) return outputs_.front().writer.get();
  const std::string path =
      is_shared_ ? path_ + std::to_string(device) + std::string(counters::kEnding) : path_;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return nullptr;
  outputs_.push_back({path, file, std::make_unique<CounterWriter>(file, most_bytes_)});
  return outputs_.back().writer.get();
}

void CounterOutputs::remove_files() {
  for (const Output& output : outputs_) ::unlink(output.path.c_str());
}

void CounterOutputs::remove_folder() {
  remove_files();
  for (const char* name : {"input", "state", "lock"}) ::unlink((path_ + name).c_str());
  ::rmdir(path_.c_str());
}

}  // namespace lanescope::record_cupti
