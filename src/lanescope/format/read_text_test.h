// Reads the text of a trace and looks into the result, for tests.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/format/read_trace.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

inline Trace read_text(std::string_view text, const ReadOptions& options = {}) {
  auto trace = read_trace_bytes(text, options);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().message) << "\n" << text.substr(0, 300);
  return trace ? *std::move(trace) : Trace();
}

inline std::string error_of_text(std::string_view text) {
  const auto trace = read_trace_bytes(text, {}, "file");
  EXPECT_FALSE(trace) << text.substr(0, 100);
  return trace ? "" : std::string(errc_name(trace.error().code)) + ": " + trace.error().message;
}

inline std::uint64_t count_of(const Trace& trace, ImportIssue issue) {
  return trace.import_stats()[issue].count;
}

inline std::uint64_t offset_of(const Trace& trace, ImportIssue issue) {
  return trace.import_stats()[issue].first_offset.value_or(~0ull);
}

}  // namespace lanescope::format
