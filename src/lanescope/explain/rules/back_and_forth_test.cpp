#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

void cast(ProgramSketch& p, const std::string& to, const std::string& from, std::int64_t us_value,
          const std::string& dims = "[[64, 64], [64, 64], []]") {
  p.begin_op("aten::to");
  p.op("aten::copy_",
       {.input_dims = dims, .input_types = "[\"" + to + "\", \"" + from + "\", \"Scalar\"]"},
       kElementwise, us_value);
  p.end();
}

// A step: twice a product, a cast to float32 of 30 us, a softmax of 80 us, and `back` of 20 us.
Trace draw_back_and_forth(const std::string& back,
                          const std::string& dims_back = "[[64, 64], [64, 64], []]",
                          int pairs = 2) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    for (int i = 0; i < pairs; ++i) {
      p.kernel("gemm", 100);
      cast(p, "float", "c10::BFloat16", 30);
      p.op("aten::_softmax", {.input_dims = "[[64, 64]]"}, "cunn_SoftMaxForward", 80);
      if (!back.empty()) cast(p, back, "float", 20, dims_back);
    }
  });
  return program.trace();
}

// Two pairs of 30 + 20 us per step.
TEST(BackAndForthTest, CountsBothConversionsOfAPair) {
  const auto finding = find_by_rule(draw_back_and_forth("c10::BFloat16"), "back-and-forth");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 2);
  EXPECT_EQ(finding->verdict.values.at(1).integer, us(100));
  EXPECT_EQ(finding->verdict.values.at(3).text, "bfloat16");
  EXPECT_EQ(finding->verdict.values.at(4).text, "float32");
  EXPECT_EQ(finding->at_stake_ns, us(100));
  EXPECT_EQ(finding->sample_count, 6u);  // in three steady steps
}

TEST(BackAndForthTest, IsQuietAboutOneWayAndOtherSizes) {
  EXPECT_FALSE(find_by_rule(draw_back_and_forth(""), "back-and-forth"));
  EXPECT_FALSE(find_by_rule(draw_back_and_forth("c10::Half"), "back-and-forth"));
  EXPECT_FALSE(find_by_rule(draw_back_and_forth("c10::BFloat16", "[[32, 64], [32, 64], []]"),
                            "back-and-forth"));
}

// One pair in a step may be its input and its output.
TEST(BackAndForthTest, IsQuietAboutOnePair) {
  EXPECT_FALSE(find_by_rule(draw_back_and_forth("c10::BFloat16", "[[64, 64], [64, 64], []]", 1),
                            "back-and-forth"));
}

// To the CPU and back with other work in between; a batch that comes and a result that goes are none.
TEST(BackAndForthTest, KnowsTheWayThroughTheCpu) {
  const auto draw_copies = [](const char* first, const char* second) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (const std::int64_t size : {1 << 20, 2 << 20}) {
        p.copy(50, size, first).kernel("gemm", 200);
        p.copy(40, size, second).kernel("gemm", 200);
      }
    });
    return program.trace();
  };
  const char* down = "Memcpy DtoH (Device -> Pageable)";
  const char* up = "Memcpy HtoD (Pageable -> Device)";
  const auto finding = find_by_rule(draw_copies(down, up), "back-and-forth");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(1).integer, us(2 * (50 + 40)));
  EXPECT_FALSE(find_by_rule(draw_copies(up, down), "back-and-forth"));
}

// Gloo copies what it sends to the CPU, and what it received to the GPU: no tensor of the program that could stay.
TEST(BackAndForthTest, IsQuietAboutCopiesOfACollective) {
  const auto find = [](const char* sends, const char* receives) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 2; ++i)
        p.begin_op(sends)
            .copy(50, 1'000'000, "Memcpy DtoH (Device -> Pinned)")
            .end()
            .kernel("gemm", 200)
            .begin_op(receives)
            .copy(50, 1'000'000, "Memcpy HtoD (Pinned -> Device)")
            .end()
            .kernel("gemm", 200);
    });
    return find_by_rule(program.trace(), "back-and-forth").has_value();
  };
  EXPECT_FALSE(find("c10d::allreduce_", "gloo:all_reduce"));
  EXPECT_TRUE(find("aten::to", "aten::to"));
}

// Two tensors of each step go to the CPU, 30 us each, and come back in the backward pass, 40 us each.
TEST(BackAndForthTest, KnowsWhatIsSavedForTheBackwardPass) {
  const auto find = [](const char* back) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 2; ++i)
        p.begin_op("aten::mm")
            .kernel("gemm", 100)
            .end()
            .begin_op("aten::to")
            .copy(30, 1'000'000, "Memcpy DtoH (Device -> Pageable)")
            .end();
      for (int i = 0; i < 2; ++i)
        p.begin_op(back)
            .copy(40, 1'000'000, "Memcpy HtoD (Pageable -> Device)")
            .kernel("gemm", 100)
            .end();
    });
    return find_by_rule(program.trace(), "back-and-forth");
  };
  const auto saved = find("autograd::engine::evaluate_function: MmBackward0");
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->at_stake_ns, us(2 * (30 + 40)));
  EXPECT_NE(saved->action.pattern.find("checkpoint"), std::string::npos);
  const auto other = find("aten::to");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->action.pattern.find("checkpoint"), std::string::npos);
}

// One large tensor is swapped out and comes back; a batch of that shape that came first, and a result, are no pair.
TEST(BackAndForthTest, KnowsATensorThatIsSwappedOut) {
  const auto found = [](const char* first, const char* second, const char* dims_back) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      const auto copied = [&](const char* way, const char* dims) {
        p.begin_op("aten::copy_", {.input_dims = dims, .input_types = R"(["float", "float"])"});
        p.copy(400, 8 << 20, way).end();
      };
      copied(first, "[[2048, 1024], [2048, 1024]]");
      p.kernel("gemm", 20);
      copied(second, dims_back);
      p.kernel("gemm", 20);
    });
    return find_by_rule(program.trace(), "back-and-forth");
  };
  const char* down = "Memcpy DtoH (Device -> Pinned)";
  const char* up = "Memcpy HtoD (Pinned -> Device)";
  const auto swapped = found(down, up, "[[2048, 1024], [2048, 1024]]");
  ASSERT_TRUE(swapped);
  EXPECT_EQ(swapped->brief.values.at(0).integer, 8 << 20);
  EXPECT_EQ(swapped->at_stake_ns, 800'000);
  EXPECT_FALSE(found(down, up, "[[1024, 2048], [1024, 2048]]"));
  EXPECT_FALSE(found(up, down, "[[2048, 1024], [2048, 1024]]"));
}

}  // namespace
}  // namespace lanescope::explain
