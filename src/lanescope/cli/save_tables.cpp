#include "lanescope/cli/save_tables.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "lanescope/cli/save_trace.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/record/range.h"
#include "lanescope/report/track_stacks_text.h"
#if LANESCOPE_HAS_SQL
#include "lanescope/sql/database.h"
#endif

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

Result<void> write_database(Trace&& trace, const std::string& path) {
#if LANESCOPE_HAS_SQL
  LANESCOPE_TRY(const auto database,
                sql::Database::open(std::make_shared<const Trace>(std::move(trace))));
  const std::string partial = path + ".partial-" + std::to_string(getpid());
  LANESCOPE_TRY_VOID(database->save(partial));
  std::error_code failed;
  fs::rename(partial, path, failed);
  if (!failed) return {};
  std::error_code ignored;
  fs::remove(partial, ignored);
  return Error{Errc::kIo, "cannot write " + path + ": " + failed.message()};
#else
  (void)trace;
  return Error{Errc::kUnavailable, "expected SQLite to write '" + path +
                                       "', found a lanescope that was built without it"};
#endif
}

Result<void> write_stacks(const Trace& trace, const std::string& path,
                          void (*write)(const Trace&, const report::TextSink&)) {
  LANESCOPE_TRY(const auto file, codec::create_file(path));
  Result<void> status;
  write(trace, [&](std::string_view piece) {
    status = file->write(piece);
    return status.has_value();
  });
  LANESCOPE_TRY_VOID(status);
  return file->finish();
}

Result<void> write_folded(Trace&& trace, const std::string& path) {
  return write_stacks(trace, path, report::write_folded_tracks);
}
Result<void> write_speedscope(Trace&& trace, const std::string& path) {
  return write_stacks(trace, path, report::write_speedscope_tracks);
}

constexpr std::array<OtherTarget, 3> kTargets{{{".sqlite", write_database},
                                               {".folded", write_folded},
                                               {".speedscope.json", write_speedscope}}};

}  // namespace

const OtherTarget* find_other_target(std::string_view path) {
  for (const OtherTarget& target : kTargets)
    if (path.ends_with(target.ending)) return &target;
  return nullptr;
}

std::string other_target_endings() {
  std::string text;
  for (const OtherTarget& target : kTargets)
    text.append(text.empty() ? "" : ", ").append(target.ending);
  return text;
}

int save_other(const OtherTarget& target, Trace&& trace, const std::string& path, Output& output) {
  RecordFunction stage("write trace");
  const Result<void> written = target.write(std::move(trace), path);
  if (!written) {
    output.complain(message_of(written.error()));
    return kFailed;
  }
  std::error_code failed;
  const std::uintmax_t bytes = fs::file_size(path, failed);
  print_text_written(path, failed ? 0 : bytes, output);
  return kOk;
}

}  // namespace lanescope::cli
