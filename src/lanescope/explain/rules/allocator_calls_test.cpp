#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramSketch;

// Four steps of four launches; those from `first_step` to `last_step` call for memory first.
using Names = std::pair<std::string_view, std::string_view>;
ProgramSketch with_malloc(int first_step, int last_step,
                          const Names& names = {"cudaMalloc", "cudaFree"}) {
  ProgramSketch program;
  for (int i = 1; i <= 4; ++i) {
    program.step();
    if (i >= first_step && i <= last_step) program.call(names.first, 100).call(names.second, 100);
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  return program;
}

TEST(AllocatorCallsTest, SpeaksOfAllocationsInSteadySteps) {
  const auto finding = find_by_rule(with_malloc(1, 4).trace(), "allocator-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->sample_count, 6u);
}

// 200 us of calls, then four matmuls of 50 us launched in 40: of the step's 240 us the GPU works
// 200 and is idle 40, in which it waits. The rest of the calls ran during its work: no more than
// those 40 can go.
TEST(AllocatorCallsTest, PromisesNoMoreThanTheIdleTime) {
  const auto finding = find_by_rule(with_malloc(1, 4).trace(), "allocator-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 40'000);
}

// A free that waits for the GPU: 10 to 310 us of each step; the matmul runs from 9 to 111. Without
// the call the next launch comes 300 us earlier: all of the 208 us of idleness may go, not only the
// 199 that lay inside of the call.
TEST(AllocatorCallsTest, CountsTheDelayOfACallThatWaits) {
  ProgramSketch program;
  for (int i = 1; i <= 4; ++i) program.step().launch({.us = 102}).call("cudaFree", 300).end();
  const auto finding = find_by_rule(program.trace(), "allocator-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 208'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 300'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, 199'000);
}

TEST(AllocatorCallsTest, IsQuietAboutTheFirstStep) {
  EXPECT_FALSE(find_by_rule(with_malloc(1, 1).trace(), "allocator-calls"));
}

// 10 allocations and 10 frees a step, alternating or each in one run, with `kernels` kernels.
ProgramSketch allocating_and_freeing(bool alternating, int kernels,
                                     const std::string& api = "cuda") {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 10; ++k) {
      program.call(api + "Malloc", 20);
      if (alternating) program.call(api + "Free", 20);
    }
    for (int k = 0; k < 10 && !alternating; ++k) program.call(api + "Free", 20);
    for (int k = 0; k < kernels; ++k) program.launch({.us = 5});
    program.end();
  }
  return program;
}

TEST(AllocatorCallsTest, TellsACacheThatIsOffFromAFlushAndFromAFewWorkspaces) {
  const auto says_off = [](const Trace& trace) {
    const auto finding = find_by_rule(trace, "allocator-calls");
    EXPECT_TRUE(finding);
    return finding && finding->try_next.at(0).find("NO_CUDA_MEMORY_CACHING") != std::string::npos;
  };
  EXPECT_TRUE(says_off(allocating_and_freeing(true, 10).trace()));
  EXPECT_FALSE(says_off(allocating_and_freeing(false, 10).trace()));
  EXPECT_FALSE(says_off(allocating_and_freeing(true, 200).trace()));
}

TEST(AllocatorCallsTest, NamesTheVariableOfTheRuntimeThatIsUsed) {
  const auto on_rocm =
      find_by_rule(allocating_and_freeing(true, 10, "hip").trace(), "allocator-calls");
  ASSERT_TRUE(on_rocm);
  EXPECT_THAT(on_rocm->try_next.at(0), HasSubstr("PYTORCH_NO_HIP_MEMORY_CACHING"));
  const auto on_cuda = find_by_rule(allocating_and_freeing(true, 10).trace(), "allocator-calls");
  ASSERT_TRUE(on_cuda);
  EXPECT_THAT(on_cuda->try_next.at(0), Not(HasSubstr("HIP")));
}

// Eight steps that each allocate 2 MB, of the driver too, and free nothing.
TEST(AllocatorCallsTest, AnswersWhatALeakNeedsWithTheLeak) {
  ProgramSketch program;
  std::int64_t allocated = 0;
  for (int i = 0; i < 8; ++i) {
    program.step().call("cudaMalloc", 100);
    allocated += 2 << 20;
    program.sketch().memory_at(
        program.at(program.cpu_us()), 2 << 20,
        {.address = 4096 + i, .allocated = allocated, .reserved = allocated});
    for (int k = 0; k < 4; ++k) program.launch({.us = 5});
    program.end();
  }
  const auto finding = find_by_rule(program.trace(), "allocator-calls");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->action.pattern, HasSubstr("memory-growth"));
  EXPECT_THAT(finding->action.pattern, Not(HasSubstr("expandable_segments")));
}

// Steps of two calls of aten::mm. In step i, the first allocates `calls[i]` times; nothing is freed.
struct NewMemorySteps {
  std::vector<int> calls = {1, 1, 1, 1, 1, 1};
  bool change_shapes = false, in_operator = true;
  std::string_view call = "cudaMalloc";
};
std::optional<Finding> with_new_memory(const NewMemorySteps& steps) {
  ProgramSketch program;
  for (std::size_t i = 0; i < steps.calls.size(); ++i) {
    program.step();
    const auto allocate = [&] {
      for (int k = 0; k < steps.calls[i]; ++k) program.call(steps.call, 100);
    };
    if (!steps.in_operator) allocate();
    program.begin_op("aten::mm");
    if (steps.in_operator) allocate();
    const auto blocks = static_cast<std::int64_t>(steps.change_shapes ? 132 + i : 132);
    program.kernel("gemm", 50, testing::grid(blocks)).end();
    program.op("aten::mm", {}, "gemm", 50).end();
  }
  return find_by_rule(program.trace(), "allocator-calls");
}
std::string action_with_new_memory(const NewMemorySteps& steps) {
  const auto found = with_new_memory(steps);
  EXPECT_TRUE(found);
  return found ? found->action.pattern : "";
}

TEST(AllocatorCallsTest, KnowsMemoryThatGrowsWithoutItsRecords) {
  const auto found = with_new_memory({});
  ASSERT_TRUE(found);
  EXPECT_THAT(found->action.pattern, HasSubstr("Memory grows: record with profile_memory=True"));
  EXPECT_THAT(found->brief.pattern, HasSubstr("none is freed"));
  EXPECT_EQ(found->arithmetic.at(1).values.at(0).integer, 5);  // steady steps
}

// Three steps may still fill the cache. One that counts is compared with none.
TEST(AllocatorCallsTest, SaysHowSureItIsThatMemoryGrows) {
  EXPECT_THAT(action_with_new_memory({.calls = {1, 1, 1}}),
              HasSubstr("Memory may grow: record six steps"));
  EXPECT_THAT(action_with_new_memory({.calls = {1, 1}}),
              HasSubstr("Memory may grow: record six steps"));
}

// Shapes change; the cache fills up; one step does without; no operator asks; pinned memory.
TEST(AllocatorCallsTest, CallsNothingElseMemoryThatGrows) {
  for (const NewMemorySteps& steps :
       {NewMemorySteps{.change_shapes = true}, NewMemorySteps{.calls = {8, 8, 6, 4, 2, 1}},
        NewMemorySteps{.calls = {1, 1, 1, 0, 1, 1}}, NewMemorySteps{.in_operator = false},
        NewMemorySteps{.call = "cudaHostAlloc"}})
    EXPECT_THAT(action_with_new_memory(steps), Not(HasSubstr("grow")));
}

TEST(AllocatorCallsTest, CountsEveryCallForMemory) {
  const auto finding = find_by_rule(
      with_malloc(1, 4, {"hipExtMallocWithFlags", "hipHostFree"}).trace(), "allocator-calls");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->sample_count, 6u);  // in three steady steps
  EXPECT_EQ(finding->action.pattern, "Keep shapes the same from step to step");  // AMD's
}

// In each step 40 pairs for 4 launches. In stream order the driver's pool is the cache: no advice
// to switch torch's on.
TEST(AllocatorCallsTest, AllocationsInStreamOrderAreNoSignOfAMissingCache) {
  const auto action = [](std::string_view allocate, std::string_view release) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 40; ++k) program.call(allocate, 10).call(release, 10);
      for (int k = 0; k < 4; ++k) program.launch({.us = 50});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "allocator-calls");
    EXPECT_TRUE(finding);
    EXPECT_EQ(finding ? finding->sample_count : 0, 240u);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action("cudaMalloc", "cudaFree"), ::testing::StartsWith("Unset"));
  EXPECT_THAT(action("cudaMallocAsync", "cudaFreeAsync"), ::testing::StartsWith("Keep shapes"));
}

// A library allocates its workspace and frees it in the same operator, which no setting of torch's cache changes.
// torch frees what is cached to allocate again.
TEST(AllocatorCallsTest, KnowsTheWorkspaceOfALibrary) {
  const auto found = [](const char* first, const char* second) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().begin_op("aten::linalg_lu_factor_ex").call(first, 100).kernel("lu", 50);
      program.wait("aten::nonzero").call(second, 100).end().end();
    }
    return find_by_rule(program.trace(), "allocator-calls");
  };
  const auto own = found("cudaMalloc", "cudaFree");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->kind, FindingKind::kWhere);
  EXPECT_THAT(own->try_next.at(0), HasSubstr("call aten::linalg_lu_factor_ex less often"));
  const auto torchs = found("cudaFree", "cudaMalloc");
  ASSERT_TRUE(torchs);
  EXPECT_EQ(torchs->kind, FindingKind::kCost);
  EXPECT_THAT(torchs->action.pattern, HasSubstr("Keep shapes the same"));
}

// torch's cache frees only inside of an operator that allocates. What goes outside of them, somebody gives back.
std::optional<Finding> with_memory_given_back(bool in_operator, bool grows = false,
                                              std::string_view frame = {}, bool makes_pool = true) {
  ProgramSketch program;
  for (int i = 1; i <= 4; ++i) {
    const std::string dims = grows ? "[[" + std::to_string(i) + ", 8]]" : "[[8, 8]]";
    program.step();
    const std::int64_t start = program.cpu_us();
    if (makes_pool && !frame.empty())
      program.sketch().slice("python_function", "torch/cuda/memory.py(1257): __init__",
                             ProgramSketch::at(start), ProgramSketch::at(1));
    program.pass(5).begin_op("aten::relu", {.input_dims = dims}).call("cudaMalloc", 100);
    program.kernel("relu", 50).end();
    const std::int64_t release = program.cpu_us();
    if (in_operator) program.begin_op("aten::mm");
    program.call("cudaFree", 100);
    if (in_operator) program.kernel("gemm", 50).end();
    if (!frame.empty())
      program.sketch().slice("python_function", frame, ProgramSketch::at(release),
                             ProgramSketch::at(program.cpu_us() - release));
    program.end();
  }
  return find_by_rule(program.trace(), "allocator-calls");
}

TEST(AllocatorCallsTest, KnowsMemoryThatTheProgramGivesBack) {
  const auto found = with_memory_given_back(false);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->action.pattern, HasSubstr("Find what frees it in each step"));
  EXPECT_THAT(found->brief.pattern, HasSubstr("The same GPU memory"));
  const auto of_other_sizes = with_memory_given_back(false, true);
  ASSERT_TRUE(of_other_sizes);
  EXPECT_THAT(of_other_sizes->brief.pattern, Not(HasSubstr("The same GPU memory")));
  const auto of_cache = with_memory_given_back(true);
  ASSERT_TRUE(of_cache);
  EXPECT_THAT(of_cache->action.pattern, HasSubstr("Keep shapes the same"));
}

TEST(AllocatorCallsTest, NamesWhatFramesShowOfMemoryThatIsGivenBack) {
  const auto action = [](std::string_view frame, bool makes_pool) {
    const auto found = with_memory_given_back(false, false, frame, makes_pool);
    EXPECT_TRUE(found);
    return found ? found->action.pattern : "";
  };
  constexpr std::string_view kPool = "torch/cuda/memory.py(1317): use_mem_pool";
  EXPECT_THAT(action(kPool, true), HasSubstr("MemPool once"));
  EXPECT_THAT(action(kPool, false), HasSubstr("Find what frees"));
  EXPECT_THAT(action("torch/cuda/memory.py(218): empty_cache", false),
              HasSubstr("Do not call torch.cuda.empty_cache()"));
}

}  // namespace
}  // namespace lanescope::explain
