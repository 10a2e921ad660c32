// Follows a recording that still runs: reads the file again when it has grown, and gives the page the
// newer trace.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"
#include "lanescope/server/session.h"

namespace lanescope::cli {

// What a path holds at one moment. Two marks of a path are equal when nothing was added between them.
struct FileMark {
  std::string path;  // the file: of a folder, its newest trace
  std::filesystem::file_time_type changed;
  std::uintmax_t bytes = 0;
  // For a recording: a hash of how far each of its chunks is filled. The time of change does not
  // show that, because records are written into mapped memory.
  std::uint64_t filled = 0;
  bool is_recording = false;  // a recording that its program has not finished
  bool operator==(const FileMark&) const = default;
};
// `path`: as the user named it. If a recording is gone, marks the trace that its program made from
// it. Cost: the newest names of a folder; for a recording, reading 128 bytes of each 128 KiB.
FileMark mark_of(const std::string& path);

// True: `path` can grow. It is a folder, whose newest trace may change, or an unfinished recording.
bool may_grow(const std::string& path, const FileMark& mark);

// An unfinished recording, without counting its open chunks as damage.
Result<Trace> read_unfinished(const FileMark& mark);

class TraceFollower {
 public:
  // `known` is what the session's trace was read from, marked before it was read. Starts a thread;
  // ends it when it is destroyed, after the reading that is under way.
  TraceFollower(std::string path, FileMark known, std::shared_ptr<server::Session> session);
  ~TraceFollower();
  TraceFollower(const TraceFollower&) = delete;
  TraceFollower& operator=(const TraceFollower&) = delete;

 private:
  void run();

  std::string path_;
  FileMark known_;
  std::shared_ptr<server::Session> session_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace lanescope::cli
