// What several rules need of a trace, and the words that say how to record it. A need of one rule
// is in that rule's file.
#pragma once
#include <cstddef>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rule.h"
#include "lanescope/explain/rules/arithmetic.h"
#include "lanescope/explain/rules/memory_common.h"
#include "lanescope/explain/rules/step_state.h"

namespace lanescope::explain::rules {

// For Rule::only_if.
inline bool has_no_gpu_work(const Facts& facts) { return !facts.main_device; }

// "Three steps or more" is what to record; a rule may be content with fewer of them.
template <std::size_t count>
bool has_marked_steps(const Facts& facts) {
  return facts.steps.marked && facts.steps.steps.size() >= count;
}

namespace need {

inline constexpr Need kGpuWork = {
    [](const Facts& facts) { return facts.main_device.has_value(); },
    "GPU work in the trace (record with ProfilerActivity.CUDA, and where CUPTI is allowed)"};
// Work of a GPU, or of the CPU if there is no GPU.
inline constexpr Need kAnyWork = {[](const Facts& facts) { return facts.main_device || facts.cpu; },
                                  "GPU work, or operators and annotations of the CPU"};
inline constexpr Need kLaunchCalls = {
    has_launches, "the launch calls of the GPU work (cuda_runtime and cuda_driver events)"};
// Launch calls, if the trace has GPU work.
inline constexpr Need kLaunchCallsOfGpu = {
    [](const Facts& facts) { return !facts.main_device || has_launches(facts); },
    kLaunchCalls.missing};

// For needs that count steps differently.
inline constexpr char kRecordSteps[] =
    "three steps or more (call prof.step() at the end of each iteration)";
inline constexpr Need kMarkedSteps = {has_marked_steps<1>, kRecordSteps};
inline constexpr Need kTwoMarkedSteps = {has_marked_steps<2>, kRecordSteps};

// These look at the kernels of the main device: after kGpuWork.
inline constexpr Need kShapes = {
    [](const Facts& facts) { return kernel_facts(facts).roofline.has_shapes; },
    "input shapes of the operators (record with record_shapes=True)"};
inline constexpr char kKnownGpu[] =
    "a GPU whose peak rates are known (deviceProperties must name one that `lanescope info` rates)";
inline constexpr Need kPeakRates = {
    [](const Facts& facts) { return kernel_facts(facts).roofline.spec != nullptr; }, kKnownGpu};
inline constexpr Need kPeakBandwidth = {
    [](const Facts& facts) {
      return kernel_facts(facts).roofline.bandwidth_bytes_per_s.has_value();
    },
    kKnownGpu};
inline constexpr Need kMultiprocessors = {
    [](const Facts& facts) { return kernel_facts(facts).roofline.device.sm_count.has_value(); },
    "the number of multiprocessors (deviceProperties)"};

inline constexpr Need kMemoryRecords = {
    [](const Facts& facts) { return main_memory(facts) != nullptr; },
    "memory records (record with profile_memory=True)"};
// After kMemoryRecords.
inline constexpr Need kGpuMemoryRecords = {
    [](const Facts& facts) { return main_memory(facts)->is_accelerator(); },
    "memory records of a GPU (record with profile_memory=True and ProfilerActivity.CUDA)"};

inline constexpr Need kWholeFile = {
    [](const Facts& facts) { return !facts.trace->import_stats().is_truncated(); },
    "the whole file (its end is missing)"};

}  // namespace need

// What a rule may find missing, beyond its needs, when it looks.
inline constexpr char kNeedsGrids[] =
    "grid, block and registers of the kernels (CUPTI gives them; traces of ROCm lack them)";
inline constexpr char kNeedsGemmShapes[] =
    "the shapes of the matmuls: most were launched by graphs, compiled code or libraries "
    "(record a run without CUDA graphs)";
inline constexpr char kNeedsOperators[] =
    "operators of known work: much of the GPU work was launched by graphs, compiled code or by "
    "operators that are not modelled";

}  // namespace lanescope::explain::rules
