// The user's cache folder: automatic indexes lie in it, and what was checked is remembered there.
// All of it may be removed at any time.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/format/index_file/index_bytes.h"

namespace lanescope::format {

// $XDG_CACHE_HOME/lanescope, or ~/.cache/lanescope.
class IndexCache {
 public:
  // The cache of this user; does not make the folder. Nothing: the environment names no place.
  static std::optional<IndexCache> of_user();
  explicit IndexCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Makes the folder, for this user only, where it is missing. False: it cannot be written, or
  // others may write it; then nothing is cached, and every index is checked each time.
  bool make() const;

  // Where the automatic index of a trace belongs: by the absolute path of the trace.
  std::filesystem::path index_of(const std::filesystem::path& trace) const;

  // Where a text that is kept of a trace belongs (kept_texts.h): by the absolute path of the trace.
  std::filesystem::path text_of(const std::filesystem::path& trace) const;
  // True: the folders of kept texts exist, and nobody else may write to them.
  bool may_use_texts() const;

  // Whether this build checked exactly this file, in this state, since the machine started (a power
  // loss or a change of the disk elsewhere comes with a new start). Only for files that are ours.
  // `layer`: the layer whose part of the index was checked, with its build; empty: the columns.
  bool was_checked(const std::filesystem::path& index, const IndexFile& file,
                   std::string_view layer = {}) const;
  // `note`: what the layer found out about it.
  void remember_checked(const std::filesystem::path& index, const IndexFile& file,
                        std::string_view layer = {}, std::string_view note = {}) const;
  // The note of exactly this file, in this state; nothing: was_checked() is false.
  std::optional<std::string> note_of(const std::filesystem::path& index, const IndexFile& file,
                                     std::string_view layer) const;

  // Whether there is room for an index of that size: at most half of what is free.
  bool has_room(std::uint64_t bytes) const;
  // Removes the oldest indexes until all of them take at most `most_bytes`; `keep` stays.
  void make_room(std::uint64_t most_bytes, const std::filesystem::path& keep) const;
  void make_room_for_texts(std::uint64_t most_bytes) const;  // the oldest texts go

 private:
  std::filesystem::path record_of(const std::filesystem::path& index,
                                  std::string_view layer = {}) const;
  std::filesystem::path folder_;
};

}  // namespace lanescope::format
