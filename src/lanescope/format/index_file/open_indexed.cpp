#include "lanescope/format/index_file/open_indexed.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/format/index_file/index_source.h"
#include "lanescope/format/index_file/write_index.h"

namespace lanescope::format {
namespace {
namespace fs = std::filesystem;

// One that fits `source`; `*is_index`: there is an index file, be it outdated or damaged.
std::optional<Trace> open_one(const fs::path& path, const IndexSource& source,
                              const std::optional<IndexCache>& cache, bool* is_one = nullptr,
                              KeptSections* kept = nullptr) {
  auto file = open_index_file(path);
  if (!file) return std::nullopt;
  const std::string_view head(reinterpret_cast<const char*>(file->bytes.bytes.data()),
                              sizeof(IndexHeader));
  if (is_one) *is_one = is_index(head) && file->is_ours;
  const bool is_known = cache && cache->was_checked(path, *file);
  std::vector<KeptSection> sections;
  auto trace =
      read_index(file->bytes, source, is_known ? IndexCheck::kHeader : IndexCheck::kAll, &sections);
  if (!trace) return std::nullopt;
  if (cache && !is_known) cache->remember_checked(path, *file);
  if (kept) {
    kept->sections = std::move(sections);
    kept->owner = file->bytes.owner;
    // Bytes that are not known as a whole may have changed since a layer looked at its own.
    const auto note = is_known ? cache->note_of(path, *file, kept->layer) : std::nullopt;
    kept->was_checked = note.has_value();
    kept->note = note.value_or("");
    if (cache) {
      kept->remember_note = [cache, path, file = std::move(*file),
                             layer = kept->layer](std::string_view text) {
        cache->remember_checked(path, file, layer, text);
      };
      kept->remember_checked = [remember = kept->remember_note] { remember({}); };
    }
  }
  return std::move(*trace);
}

// Our own file, just written of a Trace in memory, holds what it promises.
void remember_written(const fs::path& path, const std::optional<IndexCache>& cache,
                      const KeptSections* kept) {
  if (!cache) return;
  const auto file = open_index_file(path);
  if (!file) return;
  cache->remember_checked(path, *file);
  if (!kept) return;
  if (!kept->sections.empty()) cache->remember_checked(path, *file, kept->layer);
  for (const KeptNote& note : kept->notes)
    cache->remember_checked(path, *file, note.layer, note.text);
}

bool is_unchanged(const fs::path& path, const IndexSource& source) {
  const auto now = describe_source(path);
  return now && *now == source;
}

std::span<const KeptSection> sections_of(const KeptSections* kept) {
  return kept ? std::span<const KeptSection>(kept->sections) : std::span<const KeptSection>();
}

bool write_one(const Trace& trace, const IndexSource& source, const fs::path& path,
               const std::optional<IndexCache>& cache, const KeptSections* kept = nullptr) {
  if (!write_index(trace, source, path, sections_of(kept))) return false;
  remember_written(path, cache, kept);
  return true;
}

bool write_automatic(const fs::path& path, const Trace& trace, const IndexSource& source,
                     const IndexOptions& options, bool is_next_to_trace,
                     const KeptSections* kept = nullptr) {
  if (!is_unchanged(path, source)) return false;
  if (is_next_to_trace && write_one(trace, source, index_path_of(path), options.cache, kept))
    return true;
  const bool is_large = trace.import_stats().unpacked_bytes >= options.write_from_bytes ||
                        trace.slices().size() >= options.write_from_slices;
  std::uint64_t about = trace.memory_bytes();
  for (const KeptSection& section : sections_of(kept)) about += section.rows.size();
  if (!options.cache || !is_large || about > options.most_cache_bytes || !options.cache->make() ||
      !options.cache->has_room(about))
    return false;
  const fs::path cached = options.cache->index_of(path);
  if (!write_one(trace, source, cached, options.cache, kept)) return false;
  options.cache->make_room(options.most_cache_bytes, cached);
  return true;
}

bool has_usual_limits(const ReadOptions& options) {
  const ReadOptions usual;
  return options.max_event_bytes == usual.max_event_bytes &&
         options.max_expansion_ratio == usual.max_expansion_ratio;
}

std::optional<Trace> open_any(const fs::path& path, const IndexSource& source,
                              const IndexOptions& options, bool* is_next_to_trace,
                              KeptSections* kept = nullptr) {
  if (auto trace = open_one(index_path_of(path), source, options.cache, is_next_to_trace, kept))
    return trace;
  if (!options.cache) return std::nullopt;
  return open_one(options.cache->index_of(path), source, options.cache, nullptr, kept);
}

}  // namespace

fs::path index_path_of(const fs::path& trace) {
  fs::path index = trace;
  index += kIndexEnding;
  return index;
}

Result<IndexOptions> index_options_from_environment() {
  const char* const text = std::getenv("LANESCOPE_INDEX");
  const std::string_view word = text ? text : "";
  IndexOptions options;
  if (word == "off")
    options.use = IndexUse::kOff;
  else if (word == "read")
    options.use = IndexUse::kRead;
  else if (!word.empty() && word != "auto")
    return Error{Errc::kInvalidArgument,
                 "LANESCOPE_INDEX: expected off, read or auto, found '" + std::string(word) + "'"};
  if (options.use != IndexUse::kOff) options.cache = IndexCache::of_user();
  return options;
}

std::optional<Trace> open_by_index(const fs::path& path, const IndexOptions& options) {
  const auto source = describe_source(path);
  if (!source || !*source) return std::nullopt;
  return open_any(path, **source, options, nullptr);
}

Result<Trace> open_indexed(const fs::path& path, const ReadOptions& options,
                           const IndexOptions& index, KeptSections* kept) {
  if (index.use == IndexUse::kOff || !has_usual_limits(options)) return read_trace(path, options);
  const auto source = describe_source(path);
  if (!source || !*source) return read_trace(path, options);
  if (kept) kept->source = **source;
  bool is_next_to_trace = false;
  if (auto trace = open_any(path, **source, index, &is_next_to_trace, kept))
    return std::move(*trace);
  LANESCOPE_TRY(Trace trace, read_trace(path, options));
  if (index.use == IndexUse::kAutomatic)
    write_automatic(path, trace, **source, index, is_next_to_trace);
  return trace;
}

Result<Trace> open_indexed(const fs::path& path, const ReadOptions& options, IndexUse at_most) {
  LANESCOPE_TRY(IndexOptions index, index_options_from_environment());
  index.use = std::min(index.use, at_most);
  return open_indexed(path, options, index);
}

bool keep_in_index(const fs::path& path, const Trace& trace, const KeptSections& kept,
                   const IndexOptions& options) {
  if (options.use != IndexUse::kAutomatic || !kept.source) return false;
  const auto fits = [&](const fs::path& index) {
    const auto file = open_index_file(index);
    return file && file->is_ours &&
           read_index(file->bytes, *kept.source, IndexCheck::kHeader).has_value();
  };
  if (fits(index_path_of(path)))
    return write_automatic(path, trace, *kept.source, options, true, &kept);
  if (options.cache && fits(options.cache->index_of(path)) && is_unchanged(path, *kept.source))
    return write_one(trace, *kept.source, options.cache->index_of(path), options.cache, &kept);
  return write_automatic(path, trace, *kept.source, options, false, &kept);
}

Result<MadeIndex> make_index(const fs::path& path, const ReadOptions& options,
                             const IndexOptions& index, const std::optional<fs::path>& into,
                             const MakeKept& keep) {
  LANESCOPE_TRY(const auto source, describe_source(path));
  std::error_code failed;
  if (!source)
    return Error{Errc::kUnsupported, path.string() + ": expected a trace that is a file, found " +
                                         (fs::is_regular_file(path, failed)
                                              ? "a recording that its program has not finished, or "
                                                "with hardware counters; lanescope "
                                                "recover makes a .json of it"
                                              : "something else")};
  LANESCOPE_TRY(const Trace trace, read_trace(path, options));
  if (!is_unchanged(path, *source))
    return Error{Errc::kUnavailable, path.string() + " changed while it was read; try again"};
  MadeIndex made;
  made.path = into.value_or(index_path_of(path));
  const KeptSections kept = keep ? keep(trace) : KeptSections();
  LANESCOPE_TRY(made.bytes, write_index(trace, *source, made.path, kept.sections));
  remember_written(made.path, index.cache, &kept);
  made.trace_bytes = source->bytes;
  made.slices = trace.slices().size();
  return made;
}

}  // namespace lanescope::format
