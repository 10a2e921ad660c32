// Writes the index file of a trace: its columns, so that the next open only maps them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>

#include "lanescope/base/result.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/format/index_file/kept_sections.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// The file appears when it is complete, and only its owner may write it. `source`: describe_source() of
// the trace's file, called before that was read. `kept`: sections to write after the columns. Returns the
// size in bytes. Errors: kIo, the system's reason. Cost: two passes over the columns, one of
// which writes. Memory: 1 MB and the small tables. Any thread; several may write the same path, and
// the last to finish wins.
Result<std::uint64_t> write_index(const Trace& trace, const IndexSource& source,
                                  const std::filesystem::path& path,
                                  std::span<const KeptSection> kept = {});
// The same into `sink`; does not finish it.
Result<std::uint64_t> write_index_into(const Trace& trace, const IndexSource& source,
                                       codec::ByteSink& sink,
                                       std::span<const KeptSection> kept = {});

}  // namespace lanescope::format
