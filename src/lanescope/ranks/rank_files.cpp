#include "lanescope/ranks/rank_files.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "lanescope/ranks/part_file.h"

namespace lanescope::ranks {
namespace {
namespace fs = std::filesystem;

constexpr int kDeepest = 3;

// Files of one name with several endings are one trace.
class Collector {
 public:
  explicit Collector(std::span<const std::string_view> endings) : endings_(endings) {}

  void add_folder(const fs::path& folder, int depth) {
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end;
         at.increment(failed)) {
      std::error_code gone;
      if (at->is_directory(gone) && !at->is_symlink(gone)) {
        if (depth < kDeepest) add_folder(at->path(), depth + 1);
      } else if (at->is_regular_file(gone)) {
        add_by_ending(at->path().string());
      }
    }
  }
  void add(const std::string& file) { files_.push_back(file); }

  std::vector<std::string> finish() {
    for (auto& [name, file] : by_name_) files_.push_back(std::move(file.second));
    std::sort(files_.begin(), files_.end());
    files_.erase(std::unique(files_.begin(), files_.end()), files_.end());
    return std::move(files_);
  }

 private:
  void add_by_ending(const std::string& file) {
    if (file.ends_with(kPartEnding)) return add(file);
    for (std::size_t i = 0; i < endings_.size(); ++i) {
      if (!file.ends_with(endings_[i])) continue;
      const std::string name = file.substr(0, file.size() - endings_[i].size());
      const auto [found, is_new] = by_name_.try_emplace(name, i, file);
      if (!is_new && i < found->second.first) found->second = {i, file};
      return;
    }
  }

  std::span<const std::string_view> endings_;
  std::map<std::string, std::pair<std::size_t, std::string>> by_name_;
  std::vector<std::string> files_;
};

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> out;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) out.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  return out;
}

}  // namespace

Result<std::vector<std::string>> find_rank_files(const std::vector<std::string>& paths,
                                                 std::span<const std::string_view> endings) {
  Collector collector(endings);
  for (const std::string& path : paths) {
    std::error_code failed;
    const fs::file_status status = fs::status(path, failed);
    if (fs::exists(status)) {
      if (fs::is_directory(status))
        collector.add_folder(path, 1);
      else
        collector.add(path);
      continue;
    }
    const std::vector<std::string> found =
        path.find_first_of("*?[") == std::string::npos ? std::vector<std::string>{} : matches(path);
    if (found.empty())
      return Error{Errc::kInvalidArgument,
                   fmt::format("expected a trace, a folder or a pattern of names, found nothing at "
                               "'{}'; see lanescope ranks --help",
                               path)};
    for (const std::string& file : found)
      if (std::error_code gone; fs::is_directory(file, gone))
        collector.add_folder(file, 1);
      else
        collector.add(file);
  }
  std::vector<std::string> files = collector.finish();
  if (files.empty())
    return Error{Errc::kInvalidArgument,
                 fmt::format("expected traces of a job's ranks, found none in {}; a trace ends in "
                             ".json, .json.gz, .json.zst or .lspool",
                             paths.empty() ? "an empty list" : "'" + paths.front() + "'")};
  if (files.size() > kMostFiles)
    return Error{Errc::kLimit, fmt::format("expected at most {} files, found {}; name fewer, or "
                                           "write parts with --shard",
                                           kMostFiles, files.size())};
  return files;
}

std::vector<std::string> shard_of(const std::vector<std::string>& files, std::size_t index,
                                  std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t i = index; i < files.size(); i += std::max<std::size_t>(1, count))
    out.push_back(files[i]);
  return out;
}

}  // namespace lanescope::ranks
