// Reads a recording, finished or left by a killed process, into a Trace with the
// rows of torch.profiler.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

struct ReadSpoolOptions {
  std::optional<std::uint32_t> session;  // only this session's windows and metadata
  std::optional<std::uint32_t> cycle;    // only windows of this number
  std::uint32_t first_cycle = 0;         // only windows of this number and later
  // Top-level entries (key, JSON) that replace the file's.
  std::vector<std::pair<std::string, std::string>> metadata;
  // The bytes of the file of hardware counters (codec/counter_file.h); empty: none. read_spool()
  // and read_spool_pieces() find it next to the recording.
  std::string_view counters = {};
  bool live = false;  // this process is still writing it: open chunks are normal
};

// By its first 8 bytes.
bool is_spool(std::string_view first_bytes);

// Reads what can be read and counts damage (kTruncatedFile, kChecksumMismatch, kOpenChunk,
// kDroppedRecords, kOpenRange, ...). Errors: kIo, kCorruptInput (no spool at all), kUnsupported
// (another layout). Cost: the file once for its headers, twice for its records, once for device
// activities; memory is the Trace, 40 bytes per chunk and, while it reads, about 250 bytes per launch
// and 100 per range when there are activities. Any thread, one is used.
Result<Trace> read_spool(const std::filesystem::path& path, const ReadSpoolOptions& options = {});
Result<Trace> read_spool_bytes(std::string_view bytes, const ReadSpoolOptions& options = {});

// Memory of reading in pieces: about 60 MB for 100,000 rows a piece, and the texts of the recording
// (64 MiB at most), however long the recording is. A range that ended in another chunk, or by
// another thread, takes 16 to 40 bytes more.
inline constexpr std::uint64_t kRowsPerPiece = 100'000;
// Pieces come in order of time, the `number`-th of `count`, from 1. Together they have the rows of
// read_spool(), each once. An event is in the piece in which it begins, device work in the piece of
// its API call, an annotation's rows on streams in the piece of its end (those of backward work in
// the last). The first piece has the metadata, the last one the windows. Arrows of the autograd
// engine reach back 250,000 forward ops, annotations of backward work 100,000.
using SpoolPieceSink =
    std::function<Result<void>(const Trace& piece, std::size_t number, std::size_t count)>;
// Stops at an error of the sink and returns it. Otherwise like read_spool(); reads each chunk three
// times, those with activities more often.
Result<ImportStats> read_spool_pieces(const std::filesystem::path& path,
                                      std::uint64_t rows_per_piece, const SpoolPieceSink& sink,
                                      const ReadSpoolOptions& options = {});
Result<ImportStats> read_spool_bytes_pieces(std::string_view bytes, std::uint64_t rows_per_piece,
                                            const SpoolPieceSink& sink,
                                            const ReadSpoolOptions& options = {});

// The *.lspool files of a directory, by name. kIo when it cannot be listed.
Result<std::vector<std::filesystem::path>> find_spools(const std::filesystem::path& directory);

}  // namespace lanescope::format
