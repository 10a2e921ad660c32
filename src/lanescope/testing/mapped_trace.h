// A Trace whose columns lie in a mapped file, to show that readers see no difference.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

#include "lanescope/model/trace.h"

namespace lanescope::testing {

struct MappedTrace {
  Trace trace;                         // keeps the mapping alive
  std::span<const std::byte> mapping;  // all of it; every column lies in here
};

// Writes the bytes of each column to a new file in `folder`, maps the file read-only and removes
// its name. The layout is this test's own: columns one after the other, at multiples of 64 bytes.
MappedTrace map_trace(const Trace& trace, const std::filesystem::path& folder);

}  // namespace lanescope::testing
