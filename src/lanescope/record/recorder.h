// One recording session: windows of time during which every thread of this process writes into a
// spool file.
//
// The state behind it is one per process (active_recorder.cpp). Sessions that are open at the same
// time share one spool, made by the first and finished with the last; each keeps its own windows,
// so each reads back only what it asked for.
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
  // That name or, when a recording has it already, the next free one: <name>_2.lspool, ... False:
  // a file that exists is an error.
  bool free_name = false;
  std::string directory = {};  // empty: $TMPDIR or /tmp. Made when it does not exist
  bool temporary = false;      // the file goes when the last Recorder on it goes; one that was cut
                               // short at exit stays
  std::uint64_t max_bytes =
      std::uint64_t{4} << 30;  // the file never grows beyond; later records are dropped, counted
  // What the recording leaves free on the file's disk. Nothing: 5 % of it, 1 GB at least, but no
  // more than half of what is free at the start. Records beyond are dropped and counted.
  std::optional<std::uint64_t> disk_reserve_bytes = {};
  // Not 0: the most that recording may cost, as a ratio of the time of its windows, 0.001 to 0.5.
  // What would cost more is left out, and the trace says what and when (docs/decisions/
  // cost_budget.md). Holds when all open sessions of the process have a budget: the first one.
  double budget_ratio = 0;
  std::uint32_t ready_chunks =
      32;  // prepared ahead, 128 KiB each; grows to 8 times that when threads use them faster
  // Not 0: a ring. Recording goes on for ever, the file holds the last so many nanoseconds (when
  // max_bytes is too little for them: the newest that fit), and the result is these.
  std::int64_t last_ns = 0;
  // Of a ring: this signal (SIGUSR2, say) makes a dump beside the file, however busy the program
  // is. Only when the program has no handler of its own for it; else a note says so. The handler
  // stays for the life of the process, because without it a late signal would end the program.
  int dump_signal = 0;
  bool quiet_dumps = false;  // no line on stderr for each dump
  std::uint32_t activities =
      LANESCOPE_ACTIVITY_CPU;  // which sources are asked; LANESCOPE_ACTIVITY_CUDA loads the GPU
                               // source
  std::uint32_t options = 0;   // LANESCOPE_RECORD_*
};

// Of the whole spool, all sessions.
struct RecorderStats {
  std::uint64_t file_bytes = 0;       // given out so far
  std::uint64_t dropped_records = 0;  // no chunk ready, or the size limit
  std::uint64_t depth_overflow = 0;   // ranges inside more than 256 open ones
  std::uint32_t threads = 0;          // that have written
  std::uint64_t lost_open_ranges =
      0;  // of a ring: open for longer than it reaches, too many at once
};

// Any thread may call anything; calls of one object must not overlap. No call throws; what the host
// did not ask for (a full disk during recording) is counted and noted, never an error of a running
// program.
class LANESCOPE_RECORD_EXPORT Recorder {
 public:
  // kIo: the file cannot be made. kInvalidArgument: max_bytes too small for anything (under 1 MiB),
  // last_ns below 0, a budget_ratio out of its range.
  static Result<std::unique_ptr<Recorder>> open(const RecorderOptions& options);
  ~Recorder();  // closes
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Prepares chunks and sources; slow (milliseconds), meant for warm-up. start() does it when
  // nobody has.
  void prepare();
  // Opens a window; a window that is open stays as it is.
  Result<void> start();
  // Closes it. All records up to here are in the file, readable at once by format/spool.
  void stop();
  // Ends the session; the last one finishes the file. start() is then an error (kUnavailable).
  void close();

  // A finished recording of what was recorded up to now, of a ring the last seconds. Threads go on
  // recording; costs reading and writing the file. kIo: `path` exists, the disk is full.
  // kUnavailable: this recording is over.
  Result<void> dump(const std::string& path);
  // The same by a thread of the recorder, as <recording>_dump<K>.lspool; returns at once. `why`,
  // one line, stands in the dump and opens the line on stderr that says where it is.
  void request_dump(std::string why);
  // Of dumps that were asked for or came by signal, in order, those that are complete.
  std::vector<std::string> dumps() const;
  // The file is a ring and still written: read a dump of it, not the file.
  bool is_live_ring() const;

  // A top-level entry of the trace; the caller knows that `json` is one JSON value. kLimit: over
  // kMaxMetadataBytes.
  Result<void> add_metadata_json(std::string_view key, std::string_view json);
  static constexpr std::size_t kMaxMetadataBytes = 120 * 1024;
  const std::string& spool_path() const;
  std::uint32_t session() const;       // marks this session's windows in the file
  std::uint32_t window_count() const;  // opened so far; they are numbered from 0
  bool is_open() const;                // a window is open
  RecorderStats stats() const;
  // One clear line each: a source that could not start and why, what a source cost, a disk that was
  // full.
  std::vector<std::string> notes() const;

 private:
  struct State;
  explicit Recorder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Closes every window and finishes the file: what happens at exit to sessions nobody closed.
// Returns the path of the file that was finished, or nothing. Safe to call again.
LANESCOPE_RECORD_EXPORT std::string finish_all_sessions();

}  // namespace lanescope::record
