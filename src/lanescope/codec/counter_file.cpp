#include "lanescope/codec/counter_file.h"

#include <algorithm>
#include <cstring>

namespace lanescope::counters {
namespace {

// So that sums of times fit 64 bits: the year 2116 in nanoseconds, 49 years of a 3 GHz counter.
constexpr std::uint64_t kLatest = std::uint64_t{1} << 62;

template <typename T>
T take(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Device& device_of(CounterFile& file, std::uint16_t number) {
  for (Device& device : file.devices)
    if (device.number == number) return device;
  Device& device = file.devices.emplace_back();
  device.number = number;
  return device;
}

// The samples must have one width, and be later than those in `into`. False: damage.
bool take_samples(std::string_view payload, std::uint32_t width, bool is_slow, Samples* into) {
  constexpr std::uint32_t kMostValues = 64;
  if (width == 0 || width > kMostValues || (into->width != 0 && into->width != width)) return false;
  const std::size_t head = is_slow ? sizeof(std::uint64_t) : sizeof(SampleHead);
  const std::size_t each = head + width * sizeof(float);
  if (payload.size() % each != 0) return false;
  into->width = width;
  for (std::size_t at = 0; at < payload.size(); at += each) {
    const auto start = take<std::uint64_t>(payload, at);
    if (start > kLatest || (!into->start_ns.empty() && start <= into->start_ns.back()))
      return false;
    into->start_ns.push_back(start);
    if (!is_slow) into->length_ns.push_back(take<SampleHead>(payload, at).length_ns);
    for (std::uint32_t i = 0; i < width; ++i)
      into->values.push_back(take<float>(payload, at + head + i * sizeof(float)));
  }
  return true;
}

bool take_block(const BlockHead& head, std::string_view payload, CounterFile* file) {
  constexpr std::size_t kMostDevices = 64;
  if (head.device >= kMostDevices) return false;
  Device& device = device_of(*file, head.device);
  switch (head.kind) {
    case BlockKind::kDescription:
      device.description = payload;
      return true;
    case BlockKind::kSamples:
      return take_samples(payload, head.values, false, &device.samples);
    case BlockKind::kSlowSamples:
      return take_samples(payload, head.values, true, &device.slow);
    case BlockKind::kAnchors:
      if (payload.size() % sizeof(Anchor) != 0) return false;
      for (std::size_t at = 0; at < payload.size(); at += sizeof(Anchor)) {
        const auto anchor = take<Anchor>(payload, at);
        if (anchor.device_ns > kLatest) return false;
        device.anchors.push_back(anchor);
      }
      return true;
    case BlockKind::kLosses:
      if (payload.size() != sizeof(Losses)) return false;
      device.losses = take<Losses>(payload, 0);
      return true;
  }
  return false;
}

}  // namespace

Result<CounterFile> parse_counter_file(std::string_view bytes) {
  if (bytes.size() < sizeof(FileHead) ||
      !bytes.starts_with(std::string_view(kMagic, sizeof kMagic)))
    return Error{Errc::kCorruptInput, "expected a file of hardware counters, found other bytes"};
  CounterFile file;
  file.pid = take<FileHead>(bytes, 0).pid;
  std::size_t at = sizeof(FileHead);
  while (at < bytes.size()) {
    if (bytes.size() - at < sizeof(BlockHead)) {
      ++file.bad_blocks;
      break;
    }
    const auto head = take<BlockHead>(bytes, at);
    at += sizeof head;
    if (head.magic != kBlockMagic || head.bytes > bytes.size() - at) {
      ++file.bad_blocks;  // where the next block begins is unknown
      break;
    }
    if (!take_block(head, bytes.substr(at, head.bytes), &file)) ++file.bad_blocks;
    at += head.bytes;
  }
  std::sort(file.devices.begin(), file.devices.end(),
            [](const Device& a, const Device& b) { return a.number < b.number; });
  return file;
}

}  // namespace lanescope::counters
