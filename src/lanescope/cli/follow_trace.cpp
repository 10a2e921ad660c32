#include "lanescope/cli/follow_trace.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "lanescope/codec/spool_ending.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/format/spool/spool_bytes.h"
#include "lanescope/profiler/newest_trace.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookEvery{1000}, kNap{100};
// Reading takes at most this part of the time, so that a large recording does not keep a core busy.
constexpr int kPauseFactor = 10;

// Reads a plain struct of the file. False: the file ends before it.
template <typename Row>
bool read_row(const format::SpoolBytes& bytes, std::uint64_t offset,
              std::array<std::byte, sizeof(Row)>* into) {
  return bytes.read(offset, *into) == into->size();
}

template <typename Member>
Member member_at(std::span<const std::byte> bytes, std::size_t offset) {
  Member value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15u + 1;
}

// Adds how far the chunk at `offset` is filled. Nothing: the file ends there.
bool mix_chunk(const format::SpoolBytes& bytes, std::uint64_t offset, std::uint64_t* hash) {
  using spool::ChunkHeader;
  std::array<std::byte, sizeof(ChunkHeader)> header;
  if (!read_row<ChunkHeader>(bytes, offset, &header)) return false;
  const auto mix = [&] {
    *hash = mixed(*hash, member_at<std::uint32_t>(header, offsetof(ChunkHeader, used)));
    *hash = mixed(*hash, member_at<std::uint32_t>(header, offsetof(ChunkHeader, state)));
  };
  mix();
  if (member_at<spool::ChunkKind>(header, offsetof(ChunkHeader, kind)) != spool::ChunkKind::kShared)
    return true;
  for (std::uint32_t place = 1; place <= spool::kSmallChunks; ++place) {
    if (!read_row<ChunkHeader>(bytes, offset + place * spool::kSmallChunkBytes, &header)) break;
    mix();
  }
  return true;
}

void mark_recording(FileMark* mark) {
  using spool::FileHeader;
  const auto bytes = format::open_spool_file(mark->path);
  std::array<std::byte, sizeof(FileHeader)> header;
  if (!bytes || !read_row<FileHeader>(**bytes, 0, &header)) return;
  if (std::memcmp(header.data(), spool::kMagic, sizeof spool::kMagic) != 0 ||
      member_at<std::uint32_t>(header, offsetof(FileHeader, layout_version)) !=
          spool::kLayoutVersion)
    return;
  mark->is_recording = member_at<spool::FileState>(header, offsetof(FileHeader, state)) ==
                       spool::FileState::kRecording;
  mark->filled = mark->is_recording ? 1 : 2;
  for (std::uint64_t at = spool::kHeaderBytes; mix_chunk(**bytes, at, &mark->filled);
       at += spool::kChunkBytes)
    ;
}

// A short recording becomes a .json at the end of its program, and the recording goes.
std::string trace_of_recording(const std::string& path) {
  if (!path.ends_with(spool::kEnding)) return path;
  const std::string stem = path.substr(0, path.size() - spool::kEnding.size());
  std::error_code failed;
  for (const char* suffix : {".json", ".json.gz"})
    if (fs::exists(stem + suffix, failed)) return stem + suffix;
  return path;
}

}  // namespace

FileMark mark_of(const std::string& path) {
  FileMark mark;
  mark.path = path;
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    const Result<NewestTrace> newest = newest_trace_in(path);
    if (newest) mark.path = newest->path;
  } else if (!fs::exists(path, failed)) {
    mark.path = trace_of_recording(path);
  }
  mark.changed = fs::last_write_time(mark.path, failed);
  mark.bytes = fs::file_size(mark.path, failed);
  if (mark.path.ends_with(spool::kEnding)) mark_recording(&mark);
  return mark;
}

bool may_grow(const std::string& path, const FileMark& mark) {
  std::error_code failed;
  return fs::is_directory(path, failed) || mark.is_recording;
}

Result<Trace> read_unfinished(const FileMark& mark) {
  format::ReadSpoolOptions options;
  options.live = true;
  return format::read_spool(mark.path, options);
}

TraceFollower::TraceFollower(std::string path, FileMark known,
                             std::shared_ptr<server::Session> session)
    : path_(std::move(path)),
      known_(std::move(known)),
      session_(std::move(session)),
      thread_([this] { run(); }) {}

TraceFollower::~TraceFollower() {
  ending_.store(true, std::memory_order_relaxed);
  thread_.join();
}

void TraceFollower::run() {
  Clock::duration pause = kLookEvery;
  Clock::time_point next = Clock::now();
  while (!ending_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(kNap);
    if (Clock::now() < next) continue;
    const FileMark seen = mark_of(path_);
    if (seen != known_) {
      const Clock::time_point begin = Clock::now();
      Result<Trace> trace =
          seen.is_recording ? read_unfinished(seen) : format::read_trace(seen.path);
      // A file that cannot be read now may be half written: look again.
      if (trace && trace->slices().size() > 0) {
        auto state = server::TraceState::make(std::move(*trace), seen.path);
        if (state) session_->replace(std::move(*state), may_grow(path_, seen));
        known_ = seen;
      }
      pause = std::max<Clock::duration>(kLookEvery, kPauseFactor * (Clock::now() - begin));
    }
    next = Clock::now() + pause;
  }
}

}  // namespace lanescope::cli
