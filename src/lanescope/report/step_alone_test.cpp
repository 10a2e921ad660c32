// What commands say of one step from the part of the trace that the step needs, and from all of it: the same to the last byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lanescope/analysis/dispatch_tree.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/report/dispatch_tree_text.h"
#include "lanescope/report/kernel_groups_text.h"
#include "lanescope/report/roofline_text.h"
#include "lanescope/testing/program_sketch.h"
#include "lanescope/testing/real_traces.h"
#include "lanescope/testing/sanitizers.h"
#include "lanescope/view/crop_trace.h"
#include "lanescope/view/step_needs.h"

namespace lanescope::report {
namespace {

namespace fs = std::filesystem;
using testing::ProgramSketch;
using testing::Sketch;
using view::StepWindow;

constexpr std::size_t kAllRows = 1'000'000;

std::string tree_of(const Trace& trace, const analysis::DispatchTreeOptions& options,
                    const std::vector<std::int64_t>& numbers) {
  auto tree = analysis::compute_dispatch_tree(trace, options);
  if (!tree) return tree.error().message;
  tree->steps = numbers;
  TreeTextOptions text;
  text.max_rows = -1;
  return dispatch_tree_text(*tree, text) + dispatch_tree_json(*tree);
}

// By command.
std::map<std::string, std::string> answers(const Trace& trace, std::int64_t step,
                                           std::span<const SliceId> originals,
                                           const std::vector<std::int64_t>& numbers) {
  std::map<std::string, std::string> said;
  const auto facts = explain::gather_facts(trace, {.step = step}, 1);
  if (!facts) return {{"facts", facts.error().message}};
  const auto groups = analysis::compute_kernel_groups(trace, facts->links, facts->device().timeline,
                                                      facts->steady_windows);
  said["kernels"] = kernel_groups_text(*facts, groups, {}, kAllRows);
  said["kernels --json"] = kernel_groups_json(*facts, groups, {}, originals);
  const auto& roofline = explain::kernel_facts(*facts).roofline;
  said["roofline"] = roofline_text(*facts, roofline, kAllRows);
  said["roofline --json"] = roofline_json(*facts, roofline);
  said["tree"] = tree_of(trace, {.step = step}, numbers);
  said["tree --stacks"] = tree_of(trace, {.step = step, .python_frames = true}, numbers);
  said["tree --depth 2"] = tree_of(trace, {.step = step, .max_depth = 2}, numbers);
  return said;
}

struct Seen {
  std::size_t steps = 0, alone = 0;
  std::size_t slices = 0, of_slices = 0;  // in the parts, and in their traces
};

// Of each trace `most` steps, evenly.
Seen expect_the_same(const Trace& trace, const std::string& where, std::size_t most = 100) {
  Seen seen;
  const auto facts = explain::gather_facts(trace, {}, 1);
  if (!facts) return seen;
  const std::vector<StepWindow> steps = view::step_windows(*facts);
  std::vector<std::int64_t> numbers;
  for (const StepWindow& step : steps) numbers.push_back(step.number);
  const std::size_t stride = (steps.size() + most - 1) / most;
  for (std::size_t i = 0; i < steps.size(); i += stride) {
    const StepWindow& step = steps[i];
    ++seen.steps;
    if (!step.needs.are_known()) continue;
    ++seen.alone;
    const auto part = view::crop_step(trace, step.needs);
    EXPECT_TRUE(part) << where;
    if (!part) continue;
    seen.slices += part->trace.slices().size();
    seen.of_slices += trace.slices().size();
    for (std::uint32_t row = 0; row < part->trace.slices().size(); ++row) {
      const SliceId original = part->originals[row];
      EXPECT_EQ(part->trace.start_ns(SliceId{row}), trace.start_ns(original)) << where;
      EXPECT_EQ(part->trace.name(SliceId{row}), trace.name(original)) << where;
    }
    const auto whole = answers(trace, step.number, {}, numbers);
    const auto alone = answers(part->trace, step.number, part->originals, numbers);
    for (const auto& [command, text] : whole)
      EXPECT_EQ(alone.contains(command) ? alone.at(command) : "", text)
          << where << ", step " << step.number << ", " << command;
  }
  return seen;
}

Seen expect_the_same_of_all(const fs::path& root) {
  Seen all;
  std::size_t files = 0;
  for (const fs::path& path : testing::json_traces(root)) {
    if (testing::kSanitizers && files++ % 3 != 0) continue;
    const auto trace = format::read_trace(path);
    if (!trace) continue;  // damaged on purpose, or no trace
    // All steps of all traces take half a minute, and these ten times that under a sanitizer.
    constexpr std::size_t kFewSteps = testing::kSanitizers ? 1 : 2;
    const Seen seen = expect_the_same(*trace, fs::relative(path, root).string(), kFewSteps);
    all.steps += seen.steps;
    all.alone += seen.alone;
    all.slices += seen.slices;
    all.of_slices += seen.of_slices;
  }
  fmt::print("{} of {} steps alone, {} of {} slices\n", all.alone, all.steps, all.slices,
             all.of_slices);
  return all;
}

TEST(StepAloneTest, ShippedTracesSayTheSame) {
  const Seen seen = expect_the_same_of_all(testing::shipped_traces());
  EXPECT_GE(seen.alone, testing::kSanitizers ? 20u : 100u);
  EXPECT_LT(seen.slices, seen.of_slices);
  expect_the_same_of_all(testing::odd_traces());
}

// The GPU is far behind: kernels in a step were launched one and two steps before.
TEST(StepAloneTest, LaunchesBeforeTheStepAreInItsPart) {
  ProgramSketch program;
  program.steps(6, [](ProgramSketch& p) {
    for (int i = 0; i < 5; ++i)
      p.op("aten::mm", {.input_dims = "[[64, 64], [64, 64]]"}, "gemm", 40 + 7 * i);
  });
  const Trace trace = program.trace();
  const Seen seen = expect_the_same(trace, "behind");
  EXPECT_EQ(seen.alone, 6u);
  const auto facts = explain::gather_facts(trace);
  ASSERT_TRUE(facts);
  const auto steps = view::step_windows(*facts);
  EXPECT_LT(steps[4].needs.calls.start_ns, facts->steps.steps[4].cpu_start_ns);
  EXPECT_LT(seen.slices, seen.of_slices);
}

// A thread begins a range in step 2 that ends in step 4: tree shows all of it, with what it launched.
TEST(StepAloneTest, RangesThatEndLaterAreInThePart) {
  Sketch sketch;
  for (int i = 0; i < 6; ++i) {
    const std::int64_t at = 1'000 * i;
    sketch.annotation(fmt::format("ProfilerStep#{}", i), at, 990);
    sketch.op("aten::mm", at + 100, 200)
        .runtime("cudaLaunchKernel", at + 150, 20, {.correlation = 10 + i});
    sketch.kernel("gemm", at + 300, 400, {.correlation = 10 + i});
    // Of another thread: in step 2 and 5 long enough to reach into the next ones.
    sketch.op("worker", at + 500, i == 2 ? 1'900 : 300, {.tid = 200});
    sketch.runtime("cudaMemcpyAsync", at + 600, 20, {.tid = 200, .correlation = 100 + i});
  }
  for (int i = 0; i < 6; ++i)
    sketch.slice("gpu_memcpy", "Memcpy HtoD", 1'000 * i + 800, i == 2 ? 1'500 : 50,
                 {.stream = 9, .correlation = 100 + i});
  const Trace trace = sketch.trace();
  EXPECT_EQ(expect_the_same(trace, "ranges").alone, 6u);
}

// The same ids again, as after a counter that begins anew: a part could join other calls than the whole does.
TEST(StepAloneTest, WhereIdsRepeatThePartIsNotKnown) {
  for (const bool repeats : {false, true}) {
    Sketch sketch;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = 1'000 * i, id = repeats ? 10 + i % 2 : 10 + i;
      sketch.annotation(fmt::format("ProfilerStep#{}", i), at, 990);
      sketch.op("aten::mm", at + 100, 200)
          .runtime("cudaLaunchKernel", at + 150, 20, {.correlation = id});
      sketch.kernel("gemm", at + 300, 400, {.correlation = id});
    }
    const Trace trace = sketch.trace();
    EXPECT_EQ(expect_the_same(trace, "ids").alone, repeats ? 0u : 4u);
  }
}

// A kernel of step 2 has no launch in the trace: which step it is of follows from others.
TEST(StepAloneTest, WorkWithoutALaunchNeedsTheWholeTrace) {
  Sketch sketch;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t at = 1'000 * i;
    sketch.annotation(fmt::format("ProfilerStep#{}", i), at, 990);
    sketch.op("aten::mm", at + 100, 200)
        .runtime("cudaLaunchKernel", at + 150, 20, {.correlation = 10 + i});
    sketch.kernel("gemm", at + 300, 400, {.correlation = i == 2 ? 99 : 10 + i});
  }
  const Trace trace = sketch.trace();
  EXPECT_EQ(expect_the_same(trace, "unlaunched").alone, 4u);
}

// A graph that one call launches works into the next step. Whether work is of a graph follows from all of it.
TEST(StepAloneTest, AGraphIsInThePartAsAWhole) {
  Sketch sketch;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t at = 1'000 * i;
    sketch.annotation(fmt::format("ProfilerStep#{}", i), at, 990);
    sketch.op("aten::mm", at + 100, 200, {.input_dims = "[[64, 64], [64, 64]]"});
    sketch.runtime("cudaGraphLaunch", at + 150, 20, {.correlation = 10 + i});
    for (int k = 0; k < 3; ++k)
      sketch.kernel("gemm", at + 700 + 330 * k, 300, {.correlation = 10 + i});
  }
  const Trace trace = sketch.trace();
  EXPECT_EQ(expect_the_same(trace, "graph").alone, 5u);
}

TEST(StepAloneTest, RealTracesSayTheSame) {
  LANESCOPE_NEEDS_SHARED_TRACES("ShippedTracesSayTheSame");
  expect_the_same_of_all(testing::shared_traces() / "public");
}

}  // namespace
}  // namespace lanescope::report
