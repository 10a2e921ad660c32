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
  // Where automatic indexes lie, and what was checked is known. Nothing: none is written except to
  // replace one, and each is checked each time.
  std::optional<IndexCache> cache;
  // Of text, unpacked: a smaller trace is read so fast that an index does not pay.
  std::uint64_t write_from_bytes = 256'000'000;
  // Of all automatic indexes together; the oldest ones go. A larger one is not written.
  std::uint64_t most_cache_bytes = 4'000'000'000;
};

// LANESCOPE_INDEX is "off", "read" or "auto" (not set: "auto"), and the user's cache folder.
// kInvalidArgument: it is something else.
Result<IndexOptions> index_options_from_environment();

// TRACE.lanescope, next to the trace.
std::filesystem::path index_path_of(const std::filesystem::path& trace);

// The trace of its index: the one next to it, else the one in the cache. Nothing: there is none
// that fits the file as it is now and holds what it promises.
std::optional<Trace> open_by_index(const std::filesystem::path& path, const IndexOptions& options);

// read_trace(), by an index where possible. The Trace is the same, and so are the errors: an index
// that cannot be used or written is no error. Unfinished recordings, folders, pipes, and reads with
// limits of their own are always read. Any thread. `kept`: its layer is given, all else is filled in.
Result<Trace> open_indexed(const std::filesystem::path& path, const ReadOptions& options,
                           const IndexOptions& index, KeptSections* kept = nullptr);
// With index_options_from_environment(), and `at_most` that use: commands that read the many traces
// of a job write no index, because together they would push each other out of the cache.
Result<Trace> open_indexed(const std::filesystem::path& path, const ReadOptions& options = {},
                           IndexUse at_most = IndexUse::kAutomatic);

// Writes the index of a trace once more, with what a layer above keeps in it: where one lies that
// fits the file, else where open_indexed() would write one. `kept`: as open_indexed() filled it in,
// with sections. False: nothing was written, because there is no such place, or because the file has
// changed since. Cost: write_index()'s.
bool keep_in_index(const std::filesystem::path& path, const Trace& trace, const KeptSections& kept,
                   const IndexOptions& options);

// Makes the sections that a layer above keeps; its layer is named.
using MakeKept = std::function<KeptSections(const Trace&)>;

// Reads the trace and writes its index, whatever its size; with `into`, there, else next to it.
struct MadeIndex {
  std::filesystem::path path;
  std::uint64_t bytes = 0, trace_bytes = 0, slices = 0;
};
// Errors: read_trace()'s; kIo: the index cannot be written; kUnsupported: a trace without index;
// kUnavailable: the trace changed while it was read.
Result<MadeIndex> make_index(const std::filesystem::path& path, const ReadOptions& options,
                             const IndexOptions& index,
                             const std::optional<std::filesystem::path>& into = {},
                             const MakeKept& keep = {});

}  // namespace lanescope::format
