#include "lanescope/explain/user_code.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

SliceId slice_named(const Trace& trace, std::string_view name) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.name(SliceId{i}) == name) return SliceId{i};
  return kNone<SliceId>;
}

std::string words(const Sentence& sentence) {
  std::string out = sentence.pattern;
  for (const Value& value : sentence.values) out.replace(out.find("{}"), 2, value.text);
  return out;
}

std::string place_of(Sketch& sketch, std::string_view name,
                     PlaceDetail detail = PlaceDetail::kOperators) {
  const Trace trace = sketch.trace();
  return words(user_code(*gather_facts(trace), slice_named(trace, name), detail));
}

TEST(ShortLineTest, LinesAreWrittenAsEditorsWriteThem) {
  EXPECT_EQ(short_line("/home/me/work/net/model.py(62): forward"), "net/model.py:62 forward");
  EXPECT_EQ(short_line("train.py(5): <module>"), "train.py:5 <module>");
  EXPECT_EQ(short_line("C:\\a\\b\\train.py(5): step"), "b\\train.py:5 step");
  EXPECT_EQ(short_line("<built-in method add>"), "<built-in method add>");
}

TEST(UserCodeTest, TheInnermostLineOutsideOfTorchAndTheModule) {
  Sketch sketch;
  sketch.slice("python_function", "train.py(9): <module>", 0, 1000)
      .slice("python_function", "nn.Module: Net_0", 10, 900)
      .slice("python_function", "net/model.py(62): forward", 20, 800)
      .slice("python_function", "nn.Module: RMSNorm_3", 30, 700)
      .slice("python_function", "torch/nn/functional.py(1): linear", 40, 600)
      .op("aten::linear", 50, 500);
  EXPECT_EQ(place_of(sketch, "aten::linear"), "in forward (net/model.py:62), nn.Module RMSNorm");
}

// A Python frame with the line that called it.
void add_frame(Sketch& sketch, std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
               std::string_view call_from) {
  TraceBuilder& builder = sketch.builder();
  const TrackId track =
      builder.thread_track({false, 100, kNone<StringId>}, {false, 100, kNone<StringId>});
  builder.args().begin();
  if (!call_from.empty())
    builder.args().add_string(builder.intern("CallFrom"), arg_key("CallFrom"),
                              builder.intern(call_from));
  builder.add_slice(track, builder.category("python_function"), builder.intern(name), start_ns,
                    dur_ns, builder.args().end());
}

// torch 2.14 writes from which line a frame was called. A frame's own number is that of its function.
TEST(UserCodeTest, TheLineOfTheCallWhereItIsRecorded) {
  const auto place = [](std::string_view call_from) {
    Sketch sketch;
    sketch.slice("python_function", "net/train.py(9): main", 0, 1000);
    add_frame(sketch, "torch/nn/functional.py(1): linear", 40, 600, call_from);
    add_frame(sketch, "torch/nn/init.py(8): inner", 45, 550, "torch/nn/functional.py:3");
    sketch.op("aten::linear", 50, 500);
    return place_of(sketch, "aten::linear");
  };
  EXPECT_EQ(place("net/train.py:31"), "at net/train.py:31 main");
  EXPECT_EQ(place("net/other.py:31"), "in main (net/train.py:9)");  // not the line of this frame
  EXPECT_EQ(place(""), "in main (net/train.py:9)");                 // older versions
}

TEST(UserCodeTest, ARecordedStackIsALineToo) {
  Sketch sketch;
  sketch.op("aten::linear", 0, 500,
            {.call_stack = "torch/nn/functional.py(1): linear;net/model.py(7): forward"});
  EXPECT_EQ(place_of(sketch, "aten::linear"), "at net/model.py:7 forward");
}

TEST(UserCodeTest, WithoutStacksTheRangeThatTheProgramNamed) {
  Sketch sketch;
  sketch.annotation("ProfilerStep#3", 0, 1000)
      .annotation("validate", 10, 900)
      .op("aten::linear", 50, 500);
  EXPECT_EQ(place_of(sketch, "aten::linear"), "in range validate");
}

TEST(UserCodeTest, WithoutRangesTheOutermostOperator) {
  Sketch sketch;
  sketch.annotation("ProfilerStep#3", 0, 1000)
      .op("aten::linear", 50, 500)
      .op("aten::addmm", 60, 400)
      .runtime("cudaLaunchKernel", 70, 10, {.correlation = 1})
      .kernel("gemm", 100, 50, {.stream = 7, .correlation = 1});
  EXPECT_EQ(place_of(sketch, "gemm"), "in aten::linear");
  EXPECT_EQ(place_of(sketch, "gemm", PlaceDetail::kNoOperators), "");
}

TEST(UserCodeTest, OperatorsOfTheBackwardPassLoseTheirPrefix) {
  Sketch sketch;
  sketch.op("autograd::engine::evaluate_function: MmBackward0", 50, 500).op("aten::mm", 60, 100);
  EXPECT_EQ(place_of(sketch, "aten::mm"), "in MmBackward0, backward pass");
  // Each parameter has this node: its name is no place.
  Sketch hook;
  hook.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 50, 500)
      .op("aten::item", 60, 100);
  EXPECT_EQ(place_of(hook, "aten::item"), "");
}

// The node has the sequence number of the forward operator, or that of another one.
TEST(UserCodeTest, OperatorsOfTheBackwardPassAreWhereTheirForwardOperatorWas) {
  const auto place = [](bool has_range, std::int64_t number) {
    Sketch sketch;
    if (has_range) sketch.annotation("encode", 0, 1000);
    sketch.op("aten::mm", 50, 500, {.sequence = 1})
        .op("autograd::engine::evaluate_function: MmBackward0", 2000, 500,
            {.sequence = number, .fwd_thread = 1})
        .op("aten::transpose", 2010, 100);
    return place_of(sketch, "aten::transpose");
  };
  EXPECT_EQ(place(true, 1), "in the backward pass of range encode");
  EXPECT_EQ(place(false, 1), "in the backward pass of aten::mm");
  EXPECT_EQ(place(true, 2), "in MmBackward0, backward pass");
  // The forward operator occurs everywhere: its name alone is a place only here.
  Sketch common;
  common.op("aten::mul", 50, 500, {.sequence = 1})
      .op("autograd::engine::evaluate_function: MulBackward0", 2000, 500,
          {.sequence = 1, .fwd_thread = 1})
      .op("aten::sum", 2010, 100);
  EXPECT_EQ(place_of(common, "aten::sum"), "in the backward pass of aten::mul");
}

TEST(UserCodeTest, PartsOfTorchCompileTellNoPlace) {
  Sketch sketch;
  sketch.op("TorchDynamo Cache Lookup", 0, 500).op("aten::linear", 600, 100);
  EXPECT_EQ(place_of(sketch, "TorchDynamo Cache Lookup"), "");
}

// torch before 1.11 writes the loader's range as an operator.
TEST(UserCodeTest, TheLoaderOfOldTracesIsNoOperator) {
  Sketch sketch;
  sketch.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 500)
      .op("aten::stack", 60, 100);
  EXPECT_EQ(place_of(sketch, "aten::stack"), "in aten::stack");
}

// The frames of modules in a recorded stack are no lines.
TEST(UserCodeTest, AModuleInAStackIsNoLine) {
  Sketch sketch;
  sketch.op("aten::linear", 0, 500, {.call_stack = "nn.Module: Linear_0;net/model.py(7): forward"});
  EXPECT_EQ(place_of(sketch, "aten::linear"), "at net/model.py:7 forward");
}

TEST(UserCodeTest, OperatorsThatOccurEverywhereTellNoPlace) {
  Sketch sketch;
  sketch.op("aten::to", 50, 500).op("aten::copy_", 60, 100);
  EXPECT_EQ(place_of(sketch, "aten::copy_"), "");
}

TEST(OuterUserCodeTest, TheModuleThatHoldsAll) {
  Sketch sketch;
  sketch.annotation("generate", 0, 2000)
      .slice("python_function", "nn.Module: LlamaForCausalLM_0", 10, 900)
      .slice("python_function", "nn.Module: RMSNorm_3", 30, 700)
      .op("aten::linear", 50, 500)
      .op("aten::argmax", 1000, 50);
  const Trace trace = sketch.trace();
  const Facts facts = *gather_facts(trace);
  EXPECT_EQ(words(outer_user_code(facts, slice_named(trace, "aten::linear"))),
            "in nn.Module LlamaForCausalLM");
  EXPECT_EQ(words(outer_user_code(facts, slice_named(trace, "aten::argmax"))), "in range generate");
}

// Inductor opens a range with a kernel's name around its launch.
TEST(UserCodeTest, AGeneratedKernelIsNoRangeOfTheProgram) {
  EXPECT_FALSE(is_own_range("triton_poi_fused_add_mul_tanh_0"));
  EXPECT_TRUE(is_own_range("my triton part"));
}

}  // namespace
}  // namespace lanescope::explain
