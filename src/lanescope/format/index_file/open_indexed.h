// The one way in which commands and Python open a trace file: by its index where there is one, else
// by reading it. docs/decisions/index_file.md says when an index is written.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "lanescope/base/result.h"
#include "lanescope/format/index_file/index_cache.h"
#include "lanescope/format/index_file/kept_sections.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

enum class IndexUse : std::uint8_t {
  kOff,        // reads the trace
  kRead,       // uses an index, writes none
  kAutomatic,  // also writes one of a large trace, and replaces an outdated one
};

struct IndexOptions {
  IndexUse use = IndexUse::kAutomatic;
  // Where automatic indexes lie, and where it is remembered which were checked. Nothing: an index
  // is written only to replace one, and each is checked each time.
  std::optional<IndexCache> cache;
  // An index is written from so many bytes of unpacked text on, or from so many slices on (a
  // recording has four times as many slices a byte). A smaller trace is read so fast that an index
  // does not pay.
  std::uint64_t write_from_bytes = 256'000'000;
  std::uint64_t write_from_slices = 700'000;
  // Most bytes of all automatic indexes; the oldest ones go. A larger one is not written.
  std::uint64_t most_cache_bytes = 4'000'000'000;
};

// LANESCOPE_INDEX is "off", "read" or "auto" (not set: "auto"), and the user's cache folder.
// kInvalidArgument: it is something else.
Result<IndexOptions> index_options_from_environment();

// TRACE.lanescope, next to the trace.
std::filesystem::path index_path_of(const std::filesystem::path& trace);

// Opens the trace from its index: the one next to it, else the one in the cache. Nothing: there is
// no index, or it does not fit the file as it is now, or it is damaged.
std::optional<Trace> open_by_index(const std::filesystem::path& path, const IndexOptions& options);

// As read_trace(), but from an index where possible, with the same Trace and errors. An index that
// cannot be used or written is no error. Unfinished recordings, pipes, and reads with limits of
// their own are always read. Any thread. `kept`: the caller sets its layer.
Result<Trace> open_indexed(const std::filesystem::path& path, const ReadOptions& options,
                           const IndexOptions& index, KeptSections* kept = nullptr);
// With index_options_from_environment(), and `at_most` that use: commands that read the many traces
// of a job write no index, because together they would push each other out of the cache.
Result<Trace> open_indexed(const std::filesystem::path& path, const ReadOptions& options = {},
                           IndexUse at_most = IndexUse::kAutomatic);

// Writes the index of a trace again, with the sections of a layer in it. It replaces the index that
// fits the file; without one, it goes where open_indexed() would write it. `kept`: as
// open_indexed() filled it in, plus the sections. False: nothing was written, because there is no
// place for it, or because the file has changed since. Cost: as write_index().
bool keep_in_index(const std::filesystem::path& path, const Trace& trace, const KeptSections& kept,
                   const IndexOptions& options);

// Makes the sections of one layer. The caller has set KeptSections::layer.
using MakeKept = std::function<KeptSections(const Trace&)>;

// Reads the trace and writes its index, whatever its size: to `into`, else next to the trace.
struct MadeIndex {
  std::filesystem::path path;
  std::uint64_t bytes = 0, trace_bytes = 0, slices = 0;
};
// Errors: read_trace()'s; kIo: the index cannot be written; kUnsupported: a trace that can have no
// index; kUnavailable: the trace changed while it was read.
Result<MadeIndex> make_index(const std::filesystem::path& path, const ReadOptions& options,
                             const IndexOptions& index,
                             const std::optional<std::filesystem::path>& into = {},
                             const MakeKept& keep = {});

}  // namespace lanescope::format
