// Reads any trace file into a Trace. The bytes decide the format, not the name.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// Who read the pieces of a JSON text that several threads shared. May be read meanwhile.
struct ReadShares {
  std::atomic<std::uint64_t> by_caller = 0, by_others = 0;  // pieces; all others are read alone
};

struct ReadOptions {
  // The reading thread sometimes calls it with the bytes read and the file's size (0:
  // unknown, a pipe).
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
  // An event or metadata entry longer than this is lost and counted. Also limits the
  // text in memory.
  std::uint64_t max_event_bytes = 64ull << 20;
  // How much text to parse at a time. The default, with its tokens, fits a core's second-level
  // cache. A smaller value is slower and gives the same Trace.
  std::uint32_t window_bytes = 256 * 1024;
  // kLimit: a compressed file that expands more than this, after the first 256 MB of text.
  std::uint64_t max_expansion_ratio = 250;
  // How many threads read the events of a JSON trace, the calling one among them. 0: one for each
  // core, at most 8. The Trace is the same for any number, and short files take one anyway. A
  // quarter as many threads (at least one; none if `threads` is 1) come in addition, to unpack
  // files of many gzip members or zstd frames.
  unsigned threads = 0;
  // False: reads each event of JSON in full, and knows none from those before it. Slower, and the same
  // Trace: what tests compare the fast way with.
  bool learn_patterns = true;
  // Gets its counts while the trace is read, for tests and benches. It must live until the reading
  // ends.
  ReadShares* shares = nullptr;
};

// Every format of formats.h, by content: JSON of torch.profiler, Kineto and Chrome (object or bare
// array), plain, gzip or zstd, and lanescope's recordings. A directory means the one recording in
// it. Damage is repaired or skipped and counted in Trace::import_stats(). Errors: kIo (open, read),
// kCorruptInput and kUnsupported (not a trace; the message says what was expected, what was found
// and what to do), kLimit. Memory: the Trace and a few MB for
// each thread. Any thread; starts others (ReadOptions::threads) that end before it returns.
Result<Trace> read_trace(const std::filesystem::path& path, const ReadOptions& options = {});
// The same for bytes in memory, which may be packed. `name` is what messages call them.
Result<Trace> read_trace_bytes(std::string_view bytes, const ReadOptions& options = {},
                               std::string_view name = "the input");

}  // namespace lanescope::format
