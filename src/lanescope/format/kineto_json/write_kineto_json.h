// Writes a Trace as clean Kineto JSON: as torch.profiler would, but sorted, escaped and
// with whole arrows.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

struct WriteOptions {
  int compression_level = 0;  // 0: the default for the packing in the name
  std::string trace_name;     // the "traceName" entry; empty: as the Trace has it, if it has one
  // Slices that overlap others of their thread or stream without nesting go to threads of their own, and times too large for a double
  // count from a later base time. Only for a trace as a whole.
  bool moves_overlaps = false;
  std::function<void(std::uint64_t done_events, std::uint64_t total_events)> progress;
};

struct WriteStats {
  std::uint64_t events = 0;
  std::uint64_t text_bytes = 0;    // JSON
  std::uint64_t file_bytes = 0;    // after packing
  std::uint64_t moved_slices = 0;  // WriteOptions::moves_overlaps
};

// Layout: docs/formats/kineto_json.md. Packed when the name ends in .gz or .zst; the file appears
// when it is complete. Reading it back gives the same Trace, with two exceptions: events are numbered
// in order of time, and only what the recording lacks is counted again. Errors: kIo (permission,
// disk full; the old file is untouched), kUnavailable (zst without libzstd). Memory: 16 bytes an
// event and 2 MB.
Result<WriteStats> write_kineto_json(const Trace& trace, const std::filesystem::path& path,
                                     const WriteOptions& options = {});
// Plain JSON in memory.
std::string kineto_json_text(const Trace& trace, const WriteOptions& options = {});

// The same for a trace in pieces, in order of time. Each piece is sorted; events of different
// pieces are not. The top-level entries come from the first piece; threads and processes are named
// once. Without finish() no file remains. One thread.
class KinetoJsonPieces {
 public:
  // Errors of both and of add() and finish(): as write_kineto_json().
  static Result<KinetoJsonPieces> create(const std::filesystem::path& path,
                                         const WriteOptions& options = {});
  static KinetoJsonPieces create(std::unique_ptr<codec::ByteSink> sink,
                                 const WriteOptions& options = {});
  KinetoJsonPieces(KinetoJsonPieces&&) noexcept;
  KinetoJsonPieces& operator=(KinetoJsonPieces&&) noexcept;
  ~KinetoJsonPieces();

  Result<void> add(const Trace& piece);
  // `found`: what was found while the pieces were read. The file says what the recording lacks.
  Result<WriteStats> finish(const ImportStats& found);

 private:
  struct State;
  explicit KinetoJsonPieces(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lanescope::format
