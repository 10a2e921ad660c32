#include "lanescope/analysis/compiled_regions.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

CompiledCode find(const Trace& trace) {
  return find_compiled_code(trace, compute_slice_nesting(trace));
}

// As torch 2.13 draws a call: lookup, region, prologue, graph; and after a break the second region
// inside the first.
testing::Sketch broken_call() {
  testing::Sketch sketch;
  sketch.op("TorchDynamo Cache Lookup", 0, 10).op("Torch-Compiled Region: 0/0", 10, 100);
  sketch.op("Pregraph bytecode", 12, 2).op("AOTDispatcher Runtime Wrapper Prologue", 15, 3);
  sketch.annotation("## Call CompiledFxGraph fabc ##", 20, 20).op("aten::addmm", 25, 10);
  sketch.op("aten::nonzero", 50, 10);
  sketch.op("TorchDynamo Cache Lookup", 62, 4).op("Torch-Compiled Region: 1/0", 66, 40);
  sketch.annotation("## Call CompiledFxGraph fdef ##", 70, 20);
  return sketch;
}

TEST(CompiledRegionsTest, ARegionInsideARegionFollowsABreak) {
  const Trace trace = broken_call().trace();
  const CompiledCode code = find(trace);
  ASSERT_EQ(code.calls.size(), 2u);
  EXPECT_EQ(code.calls[0].id, "0/0");
  EXPECT_EQ(code.calls[0].around, kNone<SliceId>);
  EXPECT_EQ(code.calls[1].id, "1/0");
  EXPECT_EQ(code.calls[1].around, code.calls[0].slice);
  EXPECT_EQ(code.graphs.size(), 2u);
  EXPECT_TRUE(code.compiles.empty());
}

TEST(CompiledRegionsTest, EachSliceHasTheInnermostLayerAroundIt) {
  const Trace trace = broken_call().trace();
  const CompiledCode code = find(trace);
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const std::string_view name = trace.name(SliceId{i});
    if (name == "aten::addmm") {
      EXPECT_EQ(code.layer[i], CompileLayer::kGraph);
    }
    if (name == "aten::nonzero") {
      EXPECT_EQ(code.layer[i], CompileLayer::kRegion);
    }
    if (name == "TorchDynamo Cache Lookup") {
      EXPECT_EQ(code.layer[i], CompileLayer::kCacheLookup);
    }
    if (name == "Pregraph bytecode") {
      EXPECT_EQ(code.layer[i], CompileLayer::kPrologue);
    }
  }
}

TEST(CompiledRegionsTest, RegionsSideBySideAreCallsOfTheirOwn) {
  testing::Sketch sketch;
  sketch.op("Torch-Compiled Region: 0/0", 0, 10).op("Torch-Compiled Region", 20, 10);
  const Trace trace = sketch.trace();
  const CompiledCode code = find(trace);
  ASSERT_EQ(code.calls.size(), 2u);
  EXPECT_EQ(code.calls[1].around, kNone<SliceId>);
  EXPECT_EQ(code.calls[1].id, "");
}

// torch 2.13: "dynamo" contains everything; its data row is inside. Without it, the
// row comes before.
TEST(CompiledRegionsTest, CompilingIsTheOutermostTimedRowWithItsId) {
  testing::Sketch sketch;
  sketch.op("dynamo", 0, 100).annotation("dynamo_data: compile_id=0/1", 1, 2);
  sketch.op("_compile.compile_inner (dynamo_timed)", 10, 80).op("aten::mm", 20, 5);
  sketch.op("## Call CompiledFxGraph ftrial ##", 30, 5);
  sketch.annotation("dynamo_data: compile_id=3/0", 200, 2);
  sketch.op("_compile.compile_inner (dynamo_timed)", 210, 50);
  sketch.op("backward._backward_impl (dynamo_timed)", 300, 50);
  const Trace trace = sketch.trace();
  const CompiledCode code = find(trace);
  ASSERT_EQ(code.compiles.size(), 3u);
  EXPECT_EQ(code.compiles[0].id, "0/1");
  EXPECT_EQ(code.compiles[0].end_ns - code.compiles[0].start_ns, 100);
  EXPECT_EQ(code.compiles[1].id, "3/0");
  EXPECT_EQ(code.compiles[1].start_ns, 210);
  EXPECT_EQ(code.compiles[2].id, "");
  EXPECT_TRUE(code.graphs.empty());  // what ran while compiling is no call
}

TEST(CompiledRegionsTest, NamesTellRegionsFunctionsAndTheirNodes) {
  EXPECT_TRUE(is_compiled_region("Torch-Compiled Region: 0/1"));
  EXPECT_FALSE(is_compiled_region("CompiledFunction"));
  EXPECT_TRUE(runs_compiled_code("Torch-Compiled Region: 0/1"));
  EXPECT_TRUE(runs_compiled_code("CompiledFunction"));
  EXPECT_FALSE(runs_compiled_code("CompiledFunctionBackward"));
  EXPECT_TRUE(is_of_compiled_function("CompiledFunctionBackward"));
}

TEST(CompiledRegionsTest, NothingCompiledIsNothing) {
  const Trace trace = testing::Sketch().op("aten::mm", 0, 10).trace();
  EXPECT_FALSE(find(trace).any());
}

}  // namespace
}  // namespace lanescope::analysis
