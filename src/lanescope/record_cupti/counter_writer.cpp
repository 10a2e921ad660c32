#include "lanescope/record_cupti/counter_writer.h"

#include <unistd.h>

#include <cstring>
#include <string>

namespace lanescope::record_cupti {

using counters::BlockKind;

CounterWriter::CounterWriter(int file, std::uint64_t most_bytes)
    : file_(file), most_bytes_(most_bytes) {
  counters::FileHead head;
  std::memcpy(head.magic, counters::kMagic, sizeof head.magic);
  head.pid = static_cast<std::uint64_t>(getppid());
  bytes_ = sizeof head;
  full_ = !put(&head, sizeof head);
}

bool CounterWriter::write(counters::BlockHead head, std::string_view payload) {
  head.bytes = static_cast<std::uint32_t>(payload.size());
  std::string block(reinterpret_cast<const char*>(&head), sizeof head);
  block += payload;
  const std::lock_guard lock(mutex_);
  // The last blocks, which say what is missing, always find room.
  if (head.kind != BlockKind::kLosses && bytes_ + block.size() > most_bytes_) full_ = true;
  if (full_ && head.kind != BlockKind::kLosses) return false;
  if (!put(block.data(), block.size())) full_ = true;
  bytes_ += block.size();
  return true;
}

bool CounterWriter::put(const void* bytes, std::size_t size) {
  const ssize_t written = ::write(file_, bytes, size);
  return written == static_cast<ssize_t>(size);  // else the disk is full; readers skip the rest
}

}  // namespace lanescope::record_cupti
