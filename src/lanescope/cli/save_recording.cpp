#include "lanescope/cli/save_recording.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "lanescope/cli/progress.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/record/range.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

// What pieces add up to.
class Totals {
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

// Standard output; what goes wrong there is said when it is closed.
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

}  // namespace

bool is_recording(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return false;
  char first[8] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(first, sizeof first);
  return format::is_spool({first, static_cast<std::size_t>(file.gcount())});
}

Result<SavedRecording> save_recording(const fs::path& recording, const std::string& target,
                                      Output& output) {
  RecordFunction stage("convert recording");
  SavedRecording saved;
  Totals totals;
  std::optional<format::KinetoJsonPieces> writer;
  ProgressLine line(output, "converting " + recording.filename().string());
  std::error_code failed;
  const std::uint64_t bytes = fs::file_size(recording, failed);
  LANESCOPE_TRY(saved.stats,
                format::read_spool_pieces(
                    recording, format::kRowsPerPiece,
                    [&](const Trace& piece, std::size_t number, std::size_t count) -> Result<void> {
                      totals.add(piece);
                      if (number == count && totals.is_empty()) return {};
                      if (!writer) {
                        LANESCOPE_TRY(writer, open_writer(target, output));
                      }
                      LANESCOPE_TRY_VOID(writer->add(piece));
                      line.update(bytes * number / count, bytes);
                      return {};
                    }));
  saved.slices = totals.slices();
  saved.tracks = totals.tracks();
  saved.is_empty = totals.is_empty();
  if (writer) {
    LANESCOPE_TRY(saved.written, writer->finish());
  }
  return saved;
}

}  // namespace lanescope::cli
