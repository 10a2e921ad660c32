#include "lanescope/cli/save_trace.h"

#include <fmt/format.h>

#include <filesystem>

#include "lanescope/cli/progress.h"
#include "lanescope/cli/text.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/format/formats.h"
#include "lanescope/record/range.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

std::string megabytes(std::uint64_t bytes) {
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

Result<void> check_target(const std::string& path, bool force) {
  if (path == "-") return {};
  std::error_code failed;
  const fs::path parent =
      fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (path.empty() || fs::is_directory(path, failed)) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("expected a file name to write to, found a folder: '{}'", path)};
  }
  if (!fs::is_directory(parent, failed)) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("expected a folder to write into, found no '{}'; make it first",
                             parent.string())};
  }
  if (!force && fs::exists(path, failed)) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("expected a new file name, found that '{}' exists; --force writes over it",
                    path)};
  }
  return {};
}

int save_trace(const Trace& trace, const std::string& path, Output& output,
               format::WriteOptions options) {
  RecordFunction stage("write trace");
  if (path == "-") {
    output.write(format::kineto_json_text(trace, options));
    return kOk;
  }
  const Result<format::WriteStats> written = [&] {
    ProgressLine line(output, "writing " + fs::path(path).filename().string(),
                      ProgressUnit::kEvents);
    options.progress = [&](std::uint64_t done, std::uint64_t total) { line.update(done, total); };
    return format::write_trace(trace, path, options);
  }();
  if (!written) {
    output.complain(message_of(written.error()));
    return kFailed;
  }
  print_written(*written, path, output);
  return kOk;
}

void print_written(const format::WriteStats& written, const std::string& path, Output& output) {
  const bool packed = written.file_bytes != written.text_bytes;
  output.write(
      fmt::format("wrote {}: {} events, {}{}\n", path, with_commas(written.events),
                  megabytes(written.file_bytes),
                  packed ? fmt::format(" ({} of JSON)", megabytes(written.text_bytes)) : ""));
  if (written.moved_slices > 0)
    output.write(fmt::format("{} slices that overlap others are on tracks of their own\n",
                             with_commas(written.moved_slices)));
}

int save_text(const std::string& text, const std::string& path, Output& output) {
  if (path == "-") {
    output.write(text);
    return kOk;
  }
  const Result<std::uint64_t> written = write_text_file(text, path);
  if (!written) {
    output.complain(message_of(written.error()));
    return kFailed;
  }
  print_text_written(path, *written, output);
  return kOk;
}

Result<std::uint64_t> write_text_file(const std::string& text, const std::string& path) {
  LANESCOPE_TRY(const auto file, codec::create_file(path));
  LANESCOPE_TRY_VOID(file->write(text));
  LANESCOPE_TRY_VOID(file->finish());
  return std::uint64_t{text.size()};
}

void print_text_written(const std::string& path, std::uint64_t bytes, Output& output) {
  output.write(fmt::format("wrote {}: {}\n", path, megabytes(bytes)));
}

}  // namespace lanescope::cli
