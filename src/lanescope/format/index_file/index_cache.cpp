#include "lanescope/format/index_file/index_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/string_pool.h"
#include "lanescope/codec/byte_sink.h"

namespace lanescope::format {
namespace {
namespace fs = std::filesystem;

constexpr char kIndexes[] = "indexes", kChecked[] = "checked", kTexts[] = "texts";
constexpr char kTextEnding[] = ".kept";
constexpr const char* kLayers[] = {"view", "info", "steps"};  // KeptSections::layer
constexpr std::size_t kMostNameBytes = 100;

std::optional<fs::path> cache_folder() {
  // As the XDG base directory specification says: a relative path is ignored.
  const auto from = [](const char* variable) -> std::optional<fs::path> {
    const char* const text = std::getenv(variable);
    if (!text || text[0] != '/') return std::nullopt;
    return fs::path(text);
  };
  if (const auto cache = from("XDG_CACHE_HOME")) return *cache / "lanescope";
  if (const auto home = from("HOME")) return *home / ".cache" / "lanescope";
  return std::nullopt;
}

bool is_private_folder(const fs::path& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
         ::access(folder.c_str(), W_OK) == 0;
}

bool make_private_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
  return is_private_folder(folder);
}

std::string absolute_text(const fs::path& path) {
  std::error_code failed;
  const fs::path real = fs::weakly_canonical(path, failed);
  return failed ? fs::absolute(path, failed).string() : real.string();
}

// One number for each start of the machine.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

// Empty: the machine does not say when it started, so nothing is remembered.
std::string record_text(const IndexFile& file, std::string_view layer) {
  const std::string boot = boot_id();
  if (boot.empty()) return "";
  const IndexFileState& state = file.state;
  return fmt::format("lanescope checked this index 1\n{} {:016x} {} {} {} {} {} {}\n", boot,
                     index_build(), state.device, state.inode, state.bytes, state.changed_ns,
                     state.status_changed_ns, layer);
}

struct CachedFile {
  fs::path path;
  std::uint64_t bytes;
  fs::file_time_type written;
};

// The files of one ending, oldest first, and the bytes of all files; `keep` counts, but is not listed.
std::pair<std::vector<CachedFile>, std::uint64_t> cached_files(const fs::path& folder,
                                                               std::string_view ending,
                                                               const fs::path& keep) {
  std::vector<CachedFile> files;
  std::error_code failed;
  std::uint64_t total = 0;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;
    const std::uint64_t bytes = fs::file_size(at->path(), gone);
    const auto written = gone ? fs::file_time_type() : fs::last_write_time(at->path(), gone);
    if (gone) continue;
    total += bytes;
    if (at->path() != keep && at->path().extension() == ending)
      files.push_back({at->path(), bytes, written});
  }
  sort_rows(files.begin(), files.end(),
            [](const CachedFile& a, const CachedFile& b) { return a.written < b.written; });
  return {std::move(files), total};
}

fs::path name_in_cache(const fs::path& folder, const fs::path& trace, std::string_view ending) {
  const std::string name = trace.filename().string();
  const std::size_t cut = name.size() - std::min(name.size(), kMostNameBytes);
  return folder /
         fmt::format("{:016x}-{}{}", hash_bytes(absolute_text(trace)), name.substr(cut), ending);
}

}  // namespace

std::optional<IndexCache> IndexCache::of_user() {
  const auto folder = cache_folder();
  return folder ? std::optional<IndexCache>(*folder) : std::nullopt;
}

bool IndexCache::make() const {
  std::error_code failed;
  fs::create_directories(folder_.parent_path(), failed);
  return make_private_folder(folder_) && make_private_folder(folder_ / kIndexes) &&
         make_private_folder(folder_ / kChecked) && make_private_folder(folder_ / kTexts);
}

fs::path IndexCache::index_of(const fs::path& trace) const {
  return name_in_cache(folder_ / kIndexes, trace, kIndexEnding);
}

fs::path IndexCache::text_of(const fs::path& trace) const {
  return name_in_cache(folder_ / kTexts, trace, kTextEnding);
}

bool IndexCache::may_use_texts() const {
  return is_private_folder(folder_) && is_private_folder(folder_ / kTexts);
}

fs::path IndexCache::record_of(const fs::path& index, std::string_view layer) const {
  const std::string kind(layer.substr(0, layer.find(' ')));  // without its build
  return folder_ / kChecked /
         fmt::format("{:016x}{}{}", hash_bytes(absolute_text(index)), kind.empty() ? "" : "-",
                     kind);
}

bool IndexCache::was_checked(const fs::path& index, const IndexFile& file,
                             std::string_view layer) const {
  return note_of(index, file, layer).has_value();
}

std::optional<std::string> IndexCache::note_of(const fs::path& index, const IndexFile& file,
                                               std::string_view layer) const {
  if (!file.is_ours || !is_private_folder(folder_) || !is_private_folder(folder_ / kChecked))
    return std::nullopt;
  std::ifstream record(record_of(index, layer), std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(record), {}};
  const std::string head = record_text(file, layer);
  if (head.empty() || !found.starts_with(head)) return std::nullopt;
  return found.substr(head.size());
}

void IndexCache::remember_checked(const fs::path& index, const IndexFile& file,
                                  std::string_view layer, std::string_view note) const {
  std::string text = file.is_ours ? record_text(file, layer) : "";
  if (text.empty() || !make()) return;
  text += note;
  const auto sink = codec::create_file(record_of(index, layer));
  if (sink && (*sink)->write(text)) static_cast<void>((*sink)->finish());
}

bool IndexCache::has_room(std::uint64_t bytes) const {
  struct statvfs info {};
  if (::statvfs(folder_.c_str(), &info) != 0) return false;
  return bytes <= static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize / 2;
}

void IndexCache::make_room(std::uint64_t most_bytes, const fs::path& keep) const {
  auto [indexes, total] = cached_files(folder_ / kIndexes, kIndexEnding, keep);
  for (const CachedFile& index : indexes) {
    if (total <= most_bytes) return;
    std::error_code gone;
    fs::remove(index.path, gone);
    fs::remove(record_of(index.path), gone);
    for (const char* layer : kLayers) fs::remove(record_of(index.path, layer), gone);
    total -= index.bytes;
  }
}

void IndexCache::make_room_for_texts(std::uint64_t most_bytes) const {
  auto [texts, total] = cached_files(folder_ / kTexts, kTextEnding, {});
  for (const CachedFile& text : texts) {
    if (total <= most_bytes) return;
    std::error_code gone;
    fs::remove(text.path, gone);
    total -= text.bytes;
  }
}

}  // namespace lanescope::format
