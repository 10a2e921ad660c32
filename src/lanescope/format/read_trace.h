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

// Several threads may share the reading of a JSON text. This counts the pieces that the calling thread
// read ahead and those that the other threads read. Any thread may look at it meanwhile.
struct ReadShares {
  std::atomic<std::uint64_t> by_caller = 0, by_others = 0;  // a text that is not shared counts none
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
  // A compressed file that expands more than this, after the first 256 MB of text, gives kLimit.
  std::uint64_t max_expansion_ratio = 250;
  // How many threads read the events of a JSON trace, the calling one among them. 0: one for each
  // core, at most 8. The Trace is the same for any number, and short files take one anyway. In
  // addition, a quarter as many threads (at least one; none if `threads` is 1) unpack files of many
  // gzip members or zstd frames. An SQLite export has one other thread, if `threads` is not 1.
  unsigned threads = 0;
  // True: recognises JSON events that look like earlier ones, which is fast. False: parses each event in
  // full. The Trace is the same; tests compare the two.
  bool learn_patterns = true;
  // Reading the trace writes its counts, for tests and benches. It must live until the reading ends.
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
