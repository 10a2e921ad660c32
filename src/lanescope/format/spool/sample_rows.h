// The samples of Python stacks in a recording become slices (sample_slices.h).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lanescope/codec/spool_records.h"
#include "lanescope/format/spool/spool_index.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

struct SampleRowsContext {
  TraceBuilder& builder;
  const SpoolIndex& index;
  Scalar pid;  // of the recorded process
  std::function<StringId(std::uint32_t text)> name_of;
  std::function<std::optional<std::int64_t>(std::uint64_t tick)> time_ns;
};

// In any order; sorted by process, thread and time here. Samples of a child of the recorded process become a
// process of their own (model/child_process.h). Counts damage.
void add_sample_rows(const SampleRowsContext& context, std::vector<spool::SampleRecord> samples);

}  // namespace lanescope::format
