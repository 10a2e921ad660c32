#include "lanescope/testing/spool_sketch.h"

#include <algorithm>
#include <cstring>

#include "lanescope/base/check.h"

namespace lanescope::testing {

using spool::ChunkKind;
using spool::Record;

SpoolSketch::SpoolSketch() : bytes_(spool::kHeaderBytes, '\0') {
  spool::FileHeader header{};
  std::copy_n(spool::kMagic, sizeof header.magic, header.magic);
  header.layout_version = spool::kLayoutVersion;
  header.pid = 100;
  header.ticks_per_second = 500'000'000;
  header.state = spool::FileState::kFinished;
  std::strcpy(header.process_name, "program");
  std::memcpy(bytes_.data(), static_cast<const void*>(&header), sizeof header);
  control_.push_back(anchor(1000, 5000));
  control_.push_back(anchor(501'000, 1'005'000));
}

spool::AnchorRecord SpoolSketch::anchor(std::uint64_t ticks, std::int64_t monotonic) {
  return {.begin_tsc = ticks,
          .monotonic_ns = monotonic,
          .realtime_ns = static_cast<std::uint64_t>(kDay + monotonic - 5000)};
}

SpoolSketch& SpoolSketch::window(std::uint64_t start, std::uint64_t stop, std::uint32_t cycle,
                                 std::uint32_t session, std::uint64_t last_ns,
                                 std::uint32_t options) {
  spool::WindowRecord mark{.begin_tsc = start,
                           .cycle = cycle,
                           .session = session,
                           .options = options,
                           .last_ns = last_ns};
  control_.push_back(mark);
  if (stop == 0) return *this;
  mark.begin_tsc = stop;
  mark.kind = spool::RecordKind::kWindowStop;
  control_.push_back(mark);
  return *this;
}

std::uint32_t SpoolSketch::text(std::string_view text) {
  const std::uint32_t id = next_text_++;
  const auto size = static_cast<std::uint32_t>(text.size());
  texts_.append(reinterpret_cast<const char*>(&id), 4)
      .append(reinterpret_cast<const char*>(&size), 4)
      .append(text);
  texts_.resize((texts_.size() + 7) / 8 * 8);
  return id;
}

void SpoolSketch::metadata(std::string_view key, std::string_view json) {
  const std::uint32_t key_text = text(key);
  control_.push_back(spool::MetadataRecord{.key = key_text, .json = text(json)});
}

void SpoolSketch::thread(std::uint32_t tid, std::uint64_t torch_tid, std::uint64_t dropped) {
  spool::ThreadSlot slot{};
  slot.os_tid = tid;
  slot.has_torch_tid = 1;
  slot.torch_tid = torch_tid;
  slot.dropped = dropped;
  std::strcpy(slot.name, "worker");
  threads_.append(reinterpret_cast<const char*>(&slot), sizeof slot);
}

spool::RangeRecord SpoolSketch::range(std::string_view name, std::uint64_t begin, std::uint64_t end,
                                      std::uint8_t scope) {
  return {.begin_tsc = begin, .end_tsc = end, .name = text(name), .scope = scope};
}

namespace {
std::string_view payload_of(const std::vector<Record>& list, std::size_t first, std::size_t count) {
  return {reinterpret_cast<const char*>(list.data() + first), count * sizeof(Record)};
}
}  // namespace

void SpoolSketch::records(std::uint32_t thread, std::uint32_t sequence,
                          const std::vector<Record>& list, bool closed) {
  add(ChunkKind::kRecords, payload_of(list, 0, list.size()),
      static_cast<std::uint32_t>(list.size()), thread, sequence, closed);
}

void SpoolSketch::kept(std::uint32_t thread, std::uint32_t sequence, std::uint32_t slot,
                       const Record& record) {
  const Record from = spool::KeptFromRecord{.place = {slot, sequence}, .thread = thread};
  kept_.insert(kept_.end(), {from, record, Record{}, Record{}});  // and an empty pair
}

void SpoolSketch::lost_until(std::uint64_t ticks) {
  std::memcpy(bytes_.data() + offsetof(spool::FileHeader, ring_lost_until), &ticks, sizeof ticks);
}

void SpoolSketch::activities(const std::vector<Record>& list, bool closed) {
  const auto is_second = [&](std::size_t i) {
    return i < list.size() && spool::activity_kind(list[i]) == spool::ActivityKind::kContinued;
  };
  for (std::size_t first = 0; first < list.size();) {
    std::size_t count = std::min<std::size_t>(spool::kRecordsPerChunk, list.size() - first);
    while (count > 1 && is_second(first + count)) --count;  // the two halves stay in one chunk
    add(ChunkKind::kActivities, payload_of(list, first, count), static_cast<std::uint32_t>(count),
        spool::kNoThread, next_activity_chunk_++, closed);
    first += count;
  }
}

std::string SpoolSketch::bytes() {
  SpoolSketch whole = *this;
  for (std::size_t at = 0; at < texts_.size();) {  // a text stays in one chunk, too
    std::size_t end = at, count = 0;
    while (end < texts_.size()) {
      std::uint32_t size = 0;
      std::memcpy(&size, texts_.data() + end + 4, 4);
      const std::size_t padded = (8 + std::size_t{size} + 7) / 8 * 8;
      if (end + padded - at > spool::kChunkPayloadBytes) break;
      end += padded;
      ++count;
    }
    if (count == 0) break;
    whole.add(ChunkKind::kTexts, std::string_view(texts_).substr(at, end - at),
              static_cast<std::uint32_t>(end - at));
    at = end;
  }
  for (std::size_t at = 0; at < threads_.size();) {
    const std::size_t most = spool::kThreadsPerChunk * sizeof(spool::ThreadSlot);
    const std::string_view part = std::string_view(threads_).substr(at, most);
    whole.add(ChunkKind::kThreads, part,
              static_cast<std::uint32_t>(part.size() / sizeof(spool::ThreadSlot)), spool::kNoThread,
              static_cast<std::uint32_t>(at / most));
    at += part.size();
  }
  whole.add_all(ChunkKind::kKept, kept_);
  whole.add_all(ChunkKind::kControl, control_);
  return whole.bytes_;
}

void SpoolSketch::add_all(ChunkKind kind, const std::vector<Record>& list) {
  for (std::size_t first = 0; first < list.size(); first += spool::kRecordsPerChunk) {
    const std::size_t count = std::min<std::size_t>(spool::kRecordsPerChunk, list.size() - first);
    add(kind, payload_of(list, first, count), static_cast<std::uint32_t>(count));
  }
}

void SpoolSketch::add(ChunkKind kind, std::string_view payload, std::uint32_t used,
                      std::uint32_t thread, std::uint32_t sequence, bool closed) {
  LANESCOPE_CHECK(payload.size() <= spool::kChunkPayloadBytes);
  std::vector<std::byte> chunk(spool::kChunkBytes);
  spool::ChunkHeader header{};
  header.magic = spool::kChunkMagic;
  header.kind = kind;
  header.thread = thread;
  header.sequence = sequence;
  header.used = used;
  std::memcpy(chunk.data(), static_cast<const void*>(&header), sizeof header);
  std::memcpy(chunk.data() + spool::kChunkHeaderBytes, payload.data(), payload.size());
  header.checksum = spool::chunk_checksum(chunk.data(), used);
  header.state = closed ? spool::ChunkState::kClosed : spool::ChunkState::kOpen;
  std::memcpy(chunk.data(), static_cast<const void*>(&header), sizeof header);
  bytes_.append(reinterpret_cast<const char*>(chunk.data()), chunk.size());
}

void ActivitySketch::call(std::uint32_t cbid, std::uint64_t begin, std::uint64_t end,
                          std::uint32_t correlation, std::uint32_t tid, spool::ApiDomain domain) {
  spool::ApiCallRecord record{};
  record.begin_tsc = begin;
  record.end_tsc = end;
  record.cbid = cbid;
  record.kind = static_cast<std::uint8_t>(spool::ActivityKind::kApiCall);
  record.domain = static_cast<std::uint8_t>(domain);
  record.correlation = correlation;
  record.os_tid = tid;
  add(record);
}

void ActivitySketch::kernel(std::uint32_t name, std::uint64_t begin, std::uint64_t end,
                            std::uint32_t correlation, std::uint32_t stream, std::uint16_t device,
                            const Shape& shape) {
  spool::KernelRecord record{};
  record.begin_tsc = begin;
  record.end_tsc = end;
  record.name = name;
  record.kind = static_cast<std::uint8_t>(spool::ActivityKind::kKernel);
  record.registers_per_thread = shape.registers;
  record.correlation = correlation;
  record.stream = stream;
  record.context = device + 1u;
  record.device = device;
  record.block_z = 1;
  record.graph_id = shape.graph;
  record.static_shared_bytes = shape.static_shared;
  add(record);
  spool::KernelMoreRecord more{};
  more.graph_node_id = shape.graph_node;
  more.grid_x = shape.grid;
  more.grid_y = more.grid_z = 1;
  more.kind = static_cast<std::uint8_t>(spool::ActivityKind::kContinued);
  more.block_x = shape.block;
  more.block_y = 1;
  more.dynamic_shared_bytes = shape.dynamic_shared;
  more.priority = shape.priority;
  add(more);
}

}  // namespace lanescope::testing
