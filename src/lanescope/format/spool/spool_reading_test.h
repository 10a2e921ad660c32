// Reads a drawn recording and looks into the trace, for tests.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/format/spool/read_spool.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

inline Trace read_recording(const std::string& bytes, const ReadSpoolOptions& options = {}) {
  auto trace = read_spool_bytes(bytes, options);
  EXPECT_TRUE(trace) << trace.error().message;
  return std::move(trace).value();
}

// The first slice of that name; kNone: none has it.
inline SliceId find_slice(const Trace& trace, std::string_view name) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name) return SliceId{i};
  return kNone<SliceId>;
}

inline std::uint64_t issue_count(const Trace& trace, ImportIssue issue) {
  return trace.import_stats()[issue].count;
}

}  // namespace lanescope::format
