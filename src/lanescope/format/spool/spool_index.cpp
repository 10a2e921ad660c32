#include "lanescope/format/spool/spool_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lanescope/base/sort_rows.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/format/spool/open_windows.h"

namespace lanescope::format {
namespace {

// Reads fields by copy: a damaged file guarantees no alignment and no value.
template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string until_zero(const std::byte* at, std::size_t size) {
  const auto* text = reinterpret_cast<const char*>(at);
  return codec::valid_utf8({text, strnlen(text, size)});  // it may be cut inside a character
}

// A place that was never used is all 0. Other bytes that are no header are damage.
SpoolChunk read_chunk_header(const std::byte* at, std::uint64_t offset, ImportStats* stats) {
  using spool::ChunkHeader;
  SpoolChunk chunk;
  chunk.offset = offset;
  const auto magic = load<std::uint32_t>(at + offsetof(ChunkHeader, magic));
  const auto kind = load<std::uint32_t>(at + offsetof(ChunkHeader, kind));
  if (magic != spool::kChunkMagic) {
    if (magic != 0 || kind != 0) stats->count(ImportIssue::kChecksumMismatch, offset);
    return chunk;
  }
  if (kind > static_cast<std::uint32_t>(spool::ChunkKind::kShared)) {
    stats->count(ImportIssue::kChecksumMismatch, offset);
    return chunk;
  }
  chunk.kind = static_cast<spool::ChunkKind>(kind);
  chunk.thread = load<std::uint32_t>(at + offsetof(ChunkHeader, thread));
  chunk.sequence = load<std::uint32_t>(at + offsetof(ChunkHeader, sequence));
  chunk.used = load<std::uint32_t>(at + offsetof(ChunkHeader, used));
  chunk.closed = load<std::uint32_t>(at + offsetof(ChunkHeader, state)) ==
                 static_cast<std::uint32_t>(spool::ChunkState::kClosed);
  chunk.checksum = load<std::uint32_t>(at + offsetof(ChunkHeader, checksum));
  return chunk;
}

std::uint32_t unit_of(spool::ChunkKind kind) {
  if (kind == spool::ChunkKind::kThreads) return sizeof(spool::ThreadSlot);
  return kind == spool::ChunkKind::kTexts ? 1 : sizeof(spool::Record);
}

// Reads the used part of the chunk into `buffer`; reduces `used` to what the file has.
std::size_t read_chunk(const SpoolBytes& bytes, const SpoolChunk& chunk,
                       std::span<std::byte> buffer, ImportStats* stats) {
  const std::span<std::byte> wanted = buffer.first(
      spool::kChunkHeaderBytes + spool::used_bytes(chunk.kind, chunk.used, chunk.bytes));
  const std::size_t got = bytes.read(chunk.offset, wanted);
  std::fill(wanted.begin() + static_cast<std::ptrdiff_t>(got), wanted.end(), std::byte{0});
  // Thread slots count drops after the checksum only if a thread could not be stopped.
  if (stats && chunk.closed && !chunk.cut &&
      spool::chunk_checksum(buffer.data(), chunk.used, chunk.bytes) != chunk.checksum)
    stats->count(ImportIssue::kChecksumMismatch, chunk.offset);
  const std::size_t there = got > spool::kChunkHeaderBytes ? got - spool::kChunkHeaderBytes : 0;
  const std::uint32_t unit = unit_of(chunk.kind);
  return std::min(spool::used_bytes(chunk.kind, chunk.used, chunk.bytes), there / unit * unit) /
         unit;
}

// `max_texts`: ids count up and a text takes at least 8 bytes, so higher ids are damage.
void read_texts(const std::byte* payload, std::size_t size, std::uint64_t max_texts,
                SpoolIndex* index) {
  for (std::size_t at = 0; at + 8 <= size;) {
    const auto id = load<std::uint32_t>(payload + at),
               length = load<std::uint32_t>(payload + at + 4);
    if (length > size - at - 8 || id >= max_texts) return;
    if (id >= index->texts.size()) {
      index->texts.resize(id + 1);
      index->has_text.resize(id + 1);
    }
    index->texts[id].assign(reinterpret_cast<const char*>(payload + at + 8), length);
    index->has_text[id] = true;
    at += (8 + std::size_t{length} + 7) & ~std::size_t{7};
  }
}

void read_threads(const std::byte* payload, std::size_t count, std::uint32_t chunk_sequence,
                  std::size_t max_chunks, SpoolIndex* index) {
  using spool::ThreadSlot;
  if (chunk_sequence >= max_chunks) return;  // damage
  const std::size_t first = std::size_t{chunk_sequence} * spool::kThreadsPerChunk;
  if (index->threads.size() < first + count) index->threads.resize(first + count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* at = payload + i * sizeof(ThreadSlot);
    SpoolThread& thread = index->threads[first + i];
    thread.os_tid = load<std::uint32_t>(at + offsetof(ThreadSlot, os_tid));
    thread.has_torch_tid = load<std::uint32_t>(at + offsetof(ThreadSlot, has_torch_tid)) != 0;
    thread.torch_tid = load<std::uint64_t>(at + offsetof(ThreadSlot, torch_tid));
    thread.name = until_zero(at + offsetof(ThreadSlot, name), sizeof ThreadSlot::name);
    thread.lost_records = load<std::uint64_t>(at + offsetof(ThreadSlot, dropped)) +
                          load<std::uint64_t>(at + offsetof(ThreadSlot, depth_overflow)) +
                          load<std::uint64_t>(at + offsetof(ThreadSlot, reentered));
  }
}

std::string text_of(const SpoolIndex& index, std::uint32_t id) {
  return id < index.texts.size() ? index.texts[id] : std::string();
}

void read_control(const spool::Record& record, OpenWindows& open, SpoolIndex* index) {
  using spool::RecordKind;
  switch (record.head.kind) {
    case RecordKind::kAnchor: {
      const spool::AnchorRecord& anchor = record.anchor;
      index->anchors.push_back({anchor.begin_tsc, anchor.monotonic_ns,
                                static_cast<std::int64_t>(anchor.realtime_ns), anchor.width_ticks});
      return;
    }
    case RecordKind::kWindowStart: {
      const spool::WindowRecord& window = record.window;
      open.started(window.session, window.cycle, index->windows.size());
      index->windows.push_back(
          {window.session, window.cycle, window.options, window.begin_tsc, 0, window.last_ns});
      return;
    }
    case RecordKind::kWindowStop:
      for (const std::size_t i : open.stopped(record.window.session, record.window.cycle))
        index->windows[i].stop = std::max(record.window.begin_tsc, index->windows[i].start);
      return;
    case RecordKind::kMetadata: {
      const spool::MetadataRecord& metadata = record.metadata;
      index->metadata.push_back(
          {metadata.session, codec::valid_utf8(text_of(*index, metadata.key)),
           std::string(codec::without_blanks_around(text_of(*index, metadata.json)))});
      return;
    }
    case RecordKind::kSourceNote:
      index->notes.emplace_back(record.note.session, text_of(*index, record.note.line));
      return;
    default:
      return;
  }
}

// Reads the small chunks of a shared one; `buffer` has kChunkBytes. A place without a small chunk
// was not used, or is damaged.
void read_shared(const SpoolBytes& bytes, const SpoolChunk& shared, std::span<std::byte> buffer,
                 bool live, ImportStats* stats, SpoolIndex* index) {
  const std::size_t got = bytes.read(shared.offset, buffer.first(spool::kChunkBytes));
  for (std::uint32_t place = 1; place <= spool::kSmallChunks; ++place) {
    const std::size_t at = place * spool::kSmallChunkBytes;
    if (at + spool::kChunkHeaderBytes > got) return;
    const std::byte* header = buffer.data() + at;
    SpoolChunk chunk = read_chunk_header(header, shared.offset + at, stats);
    if (chunk.kind != spool::ChunkKind::kRecords ||
        load<std::uint32_t>(header + offsetof(spool::ChunkHeader, place)) != place)
      continue;
    chunk.bytes = spool::kSmallChunkBytes;
    chunk.cut = at + spool::kSmallChunkBytes > got;
    if (!chunk.closed && !live) stats->count(ImportIssue::kOpenChunk, chunk.offset);
    index->record_chunks.push_back(chunk);
  }
}

Result<void> read_file_header(const SpoolBytes& bytes, SpoolIndex* index, ImportStats* stats) {
  using spool::FileHeader;
  std::byte header[sizeof(FileHeader)] = {};
  const std::size_t got = bytes.read(0, header);
  if (got < sizeof spool::kMagic || std::memcmp(header, spool::kMagic, sizeof spool::kMagic) != 0)
    return Error{Errc::kCorruptInput, "expected a lanescope recording (.lspool), found other bytes",
                 0};
  const auto version = load<std::uint32_t>(header + offsetof(FileHeader, layout_version));
  if (got == sizeof header && (version == 0 || version > spool::kLayoutVersion))
    return Error{
        Errc::kUnsupported,
        fmt::format("a lanescope recording of layout {}; this lanescope reads layouts 1 to {}",
                    version, spool::kLayoutVersion),
        8};
  index->pid = load<std::uint64_t>(header + offsetof(FileHeader, pid));
  index->ticks_per_second = load<std::uint64_t>(header + offsetof(FileHeader, ticks_per_second));
  index->finished = load<std::uint32_t>(header + offsetof(FileHeader, state)) ==
                    static_cast<std::uint32_t>(spool::FileState::kFinished);
  index->process_name =
      until_zero(header + offsetof(FileHeader, process_name), sizeof FileHeader::process_name);
  index->host_name =
      until_zero(header + offsetof(FileHeader, host_name), sizeof FileHeader::host_name);
  if (version >= 3)
    index->ring_lost_until = load<std::uint64_t>(header + offsetof(FileHeader, ring_lost_until));
  const auto drops = load<std::uint64_t>(header + offsetof(FileHeader, dropped_without_thread));
  if (drops != 0) stats->count(ImportIssue::kDroppedRecords, std::nullopt, drops);
  const auto lost = load<std::uint64_t>(header + offsetof(FileHeader, dropped_activities));
  if (lost != 0) stats->count(ImportIssue::kDroppedRecords, std::nullopt, lost);
  return {};
}

}  // namespace

Result<SpoolIndex> read_spool_index(const SpoolBytes& bytes, bool live, ImportStats* stats) {
  SpoolIndex index;
  LANESCOPE_TRY_VOID(read_file_header(bytes, &index, stats));
  std::vector<SpoolChunk> texts, threads, control;
  std::byte header[spool::kChunkHeaderBytes];
  const ChunkBuffer buffer;
  for (std::uint64_t offset = spool::kHeaderBytes; offset < bytes.size();
       offset += spool::kChunkBytes) {
    if (bytes.read(offset, header) < sizeof header) {
      stats->count(ImportIssue::kTruncatedFile, offset);
      break;
    }
    SpoolChunk chunk = read_chunk_header(header, offset, stats);
    chunk.cut = bytes.size() - offset < spool::kChunkBytes;
    if (chunk.cut) stats->count(ImportIssue::kTruncatedFile, offset);
    std::vector<SpoolChunk>* list = nullptr;
    switch (chunk.kind) {
      case spool::ChunkKind::kRecords:
        list = &index.record_chunks;
        break;
      case spool::ChunkKind::kActivities:
        list = &index.activity_chunks;
        break;
      case spool::ChunkKind::kKept:
        list = &index.kept_chunks;
        break;
      case spool::ChunkKind::kShared:
        read_shared(bytes, chunk, buffer, live, stats, &index);
        break;
      case spool::ChunkKind::kTexts:
        list = &texts;
        break;
      case spool::ChunkKind::kThreads:
        list = &threads;
        break;
      case spool::ChunkKind::kControl:
        list = &control;
        break;
      default:
        break;
    }
    if (!list) continue;
    if (!chunk.closed && !live) stats->count(ImportIssue::kOpenChunk, offset);
    list->push_back(chunk);
  }
  const std::byte* payload = buffer.data() + spool::kChunkHeaderBytes;
  for (const SpoolChunk& chunk : texts)
    read_texts(payload, read_chunk(bytes, chunk, buffer, stats), bytes.size() / 8, &index);
  for (const SpoolChunk& chunk : threads)
    read_threads(payload, read_chunk(bytes, chunk, buffer, stats), chunk.sequence, threads.size(),
                 &index);
  OpenWindows open;
  for (const SpoolChunk& chunk : control)
    for (const spool::Record& record : read_records(bytes, chunk, buffer, stats))
      read_control(record, open, &index);
  index.stop_looks = open.looks();
  for (const SpoolThread& thread : index.threads)
    if (thread.lost_records != 0)
      stats->count(ImportIssue::kDroppedRecords, std::nullopt, thread.lost_records);
  sort_rows(index.record_chunks.begin(), index.record_chunks.end(),
            [](const SpoolChunk& a, const SpoolChunk& b) {
              return a.thread != b.thread ? a.thread < b.thread : a.sequence < b.sequence;
            });
  sort_rows(index.activity_chunks.begin(), index.activity_chunks.end(),
            [](const SpoolChunk& a, const SpoolChunk& b) { return a.sequence < b.sequence; });
  return index;
}

std::span<const spool::Record> read_records(const SpoolBytes& bytes, const SpoolChunk& chunk,
                                            std::span<std::byte> buffer, ImportStats* stats) {
  const std::size_t count = read_chunk(bytes, chunk, buffer, stats);
  // The buffer comes from an allocation, and the payload starts 128 bytes in: aligned for Record.
  return {reinterpret_cast<const spool::Record*>(buffer.data() + spool::kChunkHeaderBytes), count};
}

std::size_t count_records(std::span<const SpoolChunk> chunks) {
  std::size_t records = 0;
  for (const SpoolChunk& chunk : chunks)
    records += spool::used_bytes(chunk.kind, chunk.used, chunk.bytes) / sizeof(spool::Record);
  return records;
}

}  // namespace lanescope::format
