// What many rules ask about the events around a slice. Made when the first of them asks, and once: nesting alone
// is a pass over all slices. Any thread; whoever asks meanwhile waits. The results live as long as the Facts.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/analysis/training_phases.h"
#include "lanescope/explain/facts.h"

namespace lanescope::explain {

struct EnclosingSlot {
  std::once_flag nesting_once, phases_once, compiled_once;
  analysis::SliceNesting nesting;
  std::vector<analysis::Phase> phases;
  analysis::CompiledCode compiled;
};

// Python frames take part. Without frames in the trace it is Facts::nesting.
const analysis::SliceNesting& nesting_with_frames(const Facts& facts);

// One entry per slice. Time in Python frames belongs to the range around them.
const std::vector<analysis::Phase>& training_phases(const Facts& facts);

// By nesting_with_frames().
const analysis::CompiledCode& compiled_code(const Facts& facts);

}  // namespace lanescope::explain
