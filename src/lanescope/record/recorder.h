// One recording session: windows of time during which every thread of this process writes into
// a spool file.
//
// All sessions share one recorder per process (active_recorder.h). Sessions open at the same time
// share one spool: the first one makes it, the last one finishes it. Each has its own windows and
// reads back only what it asked for. A session that opens while all others rest makes a spool of
// its own.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/record/record_abi.h"

namespace lanescope::record {

struct RecorderOptions {
  std::string spool_path = {};  // empty: a new file in `directory`
  // True: if a recording already has that name, takes the next free one: <name>_2.lspool, ...
  // False: an existing file is an error.
  bool free_name = false;
  std::string directory = {};  // empty: $TMPDIR or /tmp. Made if it does not exist
  bool temporary = false;      // removes the file with its last Recorder; a recording cut short
                               // at exit stays
  // The file never grows beyond this; later records are dropped and counted.
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  // What the recording leaves free on the file's disk. Nothing: 5 % of the disk and at least 1 GB,
  // but at most half of what is free at the start. Records beyond that are dropped and counted.
  std::optional<std::uint64_t> disk_reserve_bytes = {};
  // Not 0: the most that recording may cost, as a ratio of the time of its windows, 0.001 to 0.5.
  // What would cost more is left out, and the trace says what and when:
  // docs/decisions/cost_budget.md. It applies only while all open sessions have a budget; the first
  // session's budget counts.
  double budget_ratio = 0;
  // With a budget and LANESCOPE_ACTIVITY_CUDA: records the GPU only in parts that the budget has
  // saved for before (gpu_parts.h); the trace is the longest part. Else the GPU is recorded from the
  // start, and the recording ends when that costs too much. Not for a ring.
  bool gpu_in_parts = false;
  // Chunks prepared ahead, 128 KiB each; up to 8 times as many when threads use them faster.
  std::uint32_t ready_chunks = 32;
  // Not 0: a ring. Recording goes on for ever, and the file keeps the last `last_ns` nanoseconds,
  // or the newest that fit into max_bytes. These are the result.
  std::int64_t last_ns = 0;
  // For a ring: this signal (for example SIGUSR2) makes a dump next to the file, however
  // busy the program is. If the program has a handler for it, a note says so and no dump is
  // made. The handler stays for the life of the process, because without it a late signal
  // would end the program.
  int dump_signal = 0;
  bool quiet_dumps = false;  // no line on stderr for each dump
  // Which sources record; LANESCOPE_ACTIVITY_CUDA loads the GPU source.
  std::uint32_t activities = LANESCOPE_ACTIVITY_CPU;
  std::uint32_t options = 0;  // LANESCOPE_RECORD_*
};

// Counts for the whole spool, over all sessions.
struct RecorderStats {
  std::uint64_t file_bytes = 0;       // in use so far
  std::uint64_t dropped_records = 0;  // no chunk ready, or the size limit
  std::uint64_t depth_overflow = 0;   // ranges inside more than 256 open ones
  std::uint32_t threads = 0;          // that have written
  // For a ring: too many ranges were open for longer than it reaches.
  std::uint64_t lost_open_ranges = 0;
};

// Any thread may call anything, but calls on one object must not overlap. No call throws. A problem
// during recording (a full disk) is counted and noted; it is never an error in the running program.
class LANESCOPE_RECORD_EXPORT Recorder {
 public:
  // kIo: the file cannot be made. kInvalidArgument: max_bytes too small for anything (under 1 MiB),
  // last_ns below 0, a budget_ratio out of its range.
  static Result<std::unique_ptr<Recorder>> open(const RecorderOptions& options);
  ~Recorder();  // closes
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Prepares chunks and sources; slow (milliseconds), meant for warm-up. start() does it if needed.
  void prepare();
  // Opens a window; an open window stays as it is.
  Result<void> start();
  // Closes the window. All records up to here are in the file, and format/spool can read
  // them at once.
  void stop();
  // Like stop(), for a session that may never start again. If another session opens while all
  // existing ones rest, this session is over, and start() is an error.
  void rest();
  // Ends the session; the last session finishes the file. start() is then an error (kUnavailable).
  void close();

  // Writes a finished recording of everything up to now (a ring: the last seconds). Threads go on
  // recording. Costs reading and writing the file. kIo: `path` exists, or the disk is full.
  // kUnavailable: this recording is over.
  Result<void> dump(const std::string& path);
  // The same on a thread of the recorder, as <recording>_dump<K>.lspool; returns its number at
  // once. `why` is one line: it is in the dump, and it starts the line on stderr that says where
  // the dump is. When the dump is complete, the dump with number `replaces` is removed (0: none).
  std::uint64_t request_dump(std::string why, std::uint64_t replaces = 0);
  // The complete dumps, also those that a signal asked for, in order, without replaced ones.
  std::vector<std::string> dumps() const;
  // The file is a ring that is still being written: read a dump of it, not the file.
  bool is_live_ring() const;

  // Adds a top-level entry to the trace; `json` must be one JSON value.
  // kLimit: over kMaxMetadataBytes.
  Result<void> add_metadata_json(std::string_view key, std::string_view json);
  static constexpr std::size_t kMaxMetadataBytes = 120 * 1024;
  const std::string& spool_path() const;
  std::uint32_t session() const;       // marks this session's windows in the file
  std::uint32_t window_count() const;  // opened so far; they are numbered from 0
  bool is_open() const;                // a window is open
  bool is_over() const;                // closed, or ended while it rested
  RecorderStats stats() const;
  // One line each: a source that could not start and why, what a source cost, a full disk.
  std::vector<std::string> notes() const;

 private:
  struct State;
  explicit Recorder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Closes every window and finishes the file, for sessions that nobody closed before exit. Returns
// the path of the finished file, or an empty string. Safe to call again.
LANESCOPE_RECORD_EXPORT std::string finish_all_sessions();

}  // namespace lanescope::record
