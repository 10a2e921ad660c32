#include "lanescope/format/spool/read_spool.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "lanescope/codec/counter_file.h"
#include "lanescope/codec/spool_ending.h"
#include "lanescope/format/spool/spool_bytes.h"
#include "lanescope/format/spool/spool_rows.h"
#include "lanescope/format/spool/spool_scan.h"

namespace lanescope::format {
namespace {

// What is no such file counts as one lost event.
void take_counters(std::string_view bytes, RowCarry* carry, ImportStats* stats) {
  if (bytes.empty()) return;
  auto file = counters::parse_counter_file(bytes);
  if (file)
    carry->counters.file = std::move(file).value();
  else
    stats->count(ImportIssue::kEventLost);
}

Result<Trace> read(const SpoolBytes& bytes, const ReadSpoolOptions& options) {
  ImportStats stats;
  LANESCOPE_TRY(const SpoolScan scan, scan_spool(bytes, options, &stats));
  stats.input_bytes = stats.unpacked_bytes = bytes.size();
  RowCarry carry;
  take_counters(options.counters, &carry, &stats);
  return read_rows(bytes, scan, options, SpoolPiece(), nullptr, &carry, std::move(stats));
}

Result<ImportStats> read_in_pieces(const SpoolBytes& bytes, const ReadSpoolOptions& options,
                                   std::uint64_t rows_per_piece, const SpoolPieceSink& sink) {
  ImportStats stats;
  LANESCOPE_TRY(SpoolScan scan, scan_spool(bytes, options, &stats));
  RowCarry carry;
  take_counters(options.counters, &carry, &stats);
  const RowPlan plan = plan_rows(bytes, &scan, rows_per_piece, &carry.activities);
  for (std::size_t i = 0; i < plan.pieces.size(); ++i) {
    LANESCOPE_TRY(const Trace piece,
                  read_rows(bytes, scan, options, plan.pieces[i],
                            plan.pieces.size() == 1 ? nullptr : &plan, &carry, {}));
    stats.add(piece.import_stats());
    LANESCOPE_TRY_VOID(sink(piece, i + 1, plan.pieces.size()));
  }
  stats.input_bytes = stats.unpacked_bytes = bytes.size();
  return stats;
}

// "": there is none, or it cannot be read.
std::string counters_next_to(const std::filesystem::path& path) {
  std::filesystem::path counters = path;
  counters += counters::kEnding;
  std::error_code error;
  if (!std::filesystem::is_regular_file(counters, error)) return {};
  std::ifstream file(counters, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Error with_path(Error error, const std::filesystem::path& path) {
  error.message = path.string() + ": " + error.message;
  return error;
}

}  // namespace

bool is_spool(std::string_view first_bytes) {
  return first_bytes.starts_with(std::string_view(spool::kMagic, sizeof spool::kMagic));
}

Result<Trace> read_spool(const std::filesystem::path& path, const ReadSpoolOptions& options) {
  LANESCOPE_TRY(const auto file, open_spool_file(path));
  ReadSpoolOptions with_counters = options;
  const std::string counters = options.counters.empty() ? counters_next_to(path) : "";
  if (!counters.empty()) with_counters.counters = counters;
  auto trace = read(*file, with_counters);
  if (!trace) return with_path(std::move(trace).error(), path);
  return trace;
}

Result<Trace> read_spool_bytes(std::string_view bytes, const ReadSpoolOptions& options) {
  return read(*spool_bytes_of(bytes), options);
}

Result<ImportStats> read_spool_pieces(const std::filesystem::path& path,
                                      std::uint64_t rows_per_piece, const SpoolPieceSink& sink,
                                      const ReadSpoolOptions& options) {
  LANESCOPE_TRY(const auto file, open_spool_file(path));
  ReadSpoolOptions with_counters = options;
  const std::string counters = options.counters.empty() ? counters_next_to(path) : "";
  if (!counters.empty()) with_counters.counters = counters;
  auto stats = read_in_pieces(*file, with_counters, rows_per_piece, sink);
  if (!stats && stats.error().code != Errc::kIo) return with_path(std::move(stats).error(), path);
  return stats;
}

Result<ImportStats> read_spool_bytes_pieces(std::string_view bytes, std::uint64_t rows_per_piece,
                                            const SpoolPieceSink& sink,
                                            const ReadSpoolOptions& options) {
  return read_in_pieces(*spool_bytes_of(bytes), options, rows_per_piece, sink);
}

Result<std::vector<std::filesystem::path>> find_spools(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == spool::kEnding) found.push_back(entry->path());
  if (error) return Error{Errc::kIo, fmt::format("{}: {}", directory.string(), error.message())};
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace lanescope::format
