#include "lanescope/cli/save_recording.h"

#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "lanescope/cli/progress.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/format/formats.h"
#include "lanescope/record/range.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

// The totals of all pieces.
class SavedTotals {
 public:
  void add(const Trace& piece) {
    for (std::uint32_t i = 0; i < piece.tracks().size(); ++i) {
      const Track& track = piece.tracks()[i];
      std::uint64_t count = 0;
      for (std::uint32_t at = track.first_slice; at < track.first_slice + track.slice_count; ++at)
        count += piece.kind(SliceId{at}) != CategoryKind::kTrace ? 1 : 0;
      if (count == 0) continue;
      slices_ += count;
      tracks_.emplace(track.kind == TrackKind::kStream, piece.process(track.process).pid.number,
                      track.tid.number);
    }
    others_ += piece.instants().size();
  }
  std::uint64_t slices() const { return slices_; }
  std::uint64_t tracks() const { return tracks_.size(); }
  // A window itself leaves one span and two marks.
  bool is_empty() const { return slices_ == 0 && others_ <= 2; }

 private:
  std::uint64_t slices_ = 0, others_ = 0;
  std::set<std::tuple<bool, std::int64_t, std::int64_t>> tracks_;
};

// Standard output; closing it reports errors.
class OutputSink final : public codec::ByteSink {
 public:
  explicit OutputSink(Output& output) : output_(output) {}
  Result<void> write(std::string_view bytes) override {
    output_.write(bytes);
    written_ += bytes.size();
    return {};
  }
  Result<void> finish() override { return {}; }
  std::uint64_t written_bytes() const override { return written_; }

 private:
  Output& output_;
  std::uint64_t written_ = 0;
};

Result<format::KinetoJsonPieces> open_writer(const std::string& target, Output& output) {
  if (target == "-") return format::KinetoJsonPieces::create(std::make_unique<OutputSink>(output));
  return format::KinetoJsonPieces::create(target);
}

// A file that no format detects is read as a recording, whose reader says what is wrong with it.
Result<ImportStats> read_pieces_of(const fs::path& recording, const format::SpoolPieceSink& sink) {
  const format::TraceFormat* const format = format::find_format_of_file(recording);
  if (format && format->read_pieces)
    return format->read_pieces(recording, format::kRowsPerPiece, sink);
  return format::read_spool_pieces(recording, format::kRowsPerPiece, sink);
}

}  // namespace

std::optional<SavedRecording> save_recording(const fs::path& recording, const std::string& target,
                                             Output& output, int* code) {
  RecordFunction stage("convert recording");
  SavedRecording saved;
  SavedTotals totals;
  std::optional<format::KinetoJsonPieces> writer;
  ProgressLine line(output, "converting " + recording.filename().string());
  std::error_code failed;
  const std::uint64_t bytes = fs::file_size(recording, failed);
  const auto write_piece = [&](const Trace& piece) -> Result<void> {
    if (!writer) {
      LANESCOPE_TRY(writer, open_writer(target, output));
    }
    return writer->add(piece);
  };
  *code = kUsage;  // unless the target fails
  const auto convert = [&]() -> Result<void> {
    const auto take_piece = [&](const Trace& piece, std::size_t number,
                                std::size_t count) -> Result<void> {
      totals.add(piece);
      if (number == count && totals.is_empty()) return {};
      Result<void> written = write_piece(piece);
      if (!written) *code = kFailed;
      line.update(bytes * number / count, bytes);
      return written;
    };
    LANESCOPE_TRY(saved.stats, read_pieces_of(recording, take_piece));
    if (!writer) return {};
    *code = kFailed;
    LANESCOPE_TRY(saved.written, writer->finish(saved.stats));
    return {};
  };
  if (const Result<void> converted = convert(); !converted) {
    output.complain(message_of(converted.error()));
    return std::nullopt;
  }
  *code = kOk;
  saved.slices = totals.slices();
  saved.tracks = totals.tracks();
  saved.is_empty = totals.is_empty();
  return saved;
}

}  // namespace lanescope::cli
