#include "lanescope/record/new_spool.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "lanescope/codec/spool_ending.h"
#include "lanescope/record/recording_name.h"

namespace lanescope::record {
namespace {
namespace fs = std::filesystem;

constexpr int kMostTries = 100'000;

bool is_there(const std::string& path) {
  struct stat found;
  return lstat(path.c_str(), &found) == 0;
}

bool has_results(const std::string& base) {
  for (const char* ending : {".json", ".json.gz", ".json.zst", ".txt"})
    if (is_there(base + ending)) return true;
  return false;
}

// The path without .lspool. Makes the folder if it is missing.
Result<std::string> first_base(const RecorderOptions& options) {
  std::error_code error;
  if (!options.spool_path.empty()) {
    const fs::path parent = fs::path(options.spool_path).parent_path();
    if (!parent.empty()) fs::create_directories(parent, error);
    std::string_view base = options.spool_path;
    if (base.ends_with(spool::kEnding)) base.remove_suffix(spool::kEnding.size());
    return std::string(base);
  }
  fs::path directory = options.directory;
  if (directory.empty()) {
    const char* temporary = getenv("TMPDIR");
    directory = temporary && *temporary ? temporary : "/tmp";
  }
  fs::create_directories(directory, error);
  if (error)
    return Error{Errc::kIo, fmt::format("{}: cannot make the directory for the recording: {}",
                                        directory.string(), error.message())};
  const char* program = options.temporary ? kTemporaryProgram : "lanescope";
  return (directory / recording_name(program, {}, "")).string();
}

}  // namespace

Result<std::unique_ptr<Spool>> create_new_spool(const RecorderOptions& options,
                                                SpoolOptions settings, InternTable* texts) {
  LANESCOPE_TRY(const std::string first, first_base(options));
  if (!options.spool_path.empty() && !options.free_name) {
    settings.path = options.spool_path;
    return Spool::create(settings, texts);
  }
  std::string base = first;
  for (int number = 2;; ++number) {
    settings.path = base + std::string(spool::kEnding);
    if (!is_there(settings.path) && !has_results(base)) {
      auto spool = Spool::create(settings, texts);
      // Whoever makes the .lspool owns the name, and the .lspool goes when the results are there.
      // So check for results again: another process may have finished in between.
      if (spool && !has_results(base)) return spool;
      if (spool) {
        (*spool)->finish(false);
        unlink(settings.path.c_str());
      } else if (!is_there(settings.path)) {
        return spool;
      }
    }
    if (number == kMostTries)
      return Error{Errc::kIo,
                   fmt::format("{}: {} recordings of that name are there; move them away", first,
                               kMostTries)};
    base = fmt::format("{}_{}", first, number);
  }
}

}  // namespace lanescope::record
