#include "lanescope/explain/missing_operators.h"

#include <gtest/gtest.h>

#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::Sketch;

constexpr std::string_view kGelu = "void at::native::vectorized_elementwise_kernel<4, gelu>(int)";

// Sixteen kernels of 10 us, launched by thread `tid` of process 100, 50 us apart.
void draw_launches(Sketch& sketch, std::int64_t tid, std::string_view kernel = kGelu,
                   std::string_view call = "cudaLaunchKernel") {
  for (std::int64_t i = 0; i < 16; ++i) {
    Fields launch{.tid = tid, .correlation = i + 1}, work{.correlation = i + 1};
    sketch.runtime(call, i * us(50), us(5), launch);
    sketch.kernel(kernel, i * us(50) + us(10), us(10), work);
  }
}

MissingOperators missing_in(Sketch& sketch) {
  const Trace trace = sketch.trace();
  const auto facts = gather_facts(trace);
  EXPECT_TRUE(facts);
  return missing_operators(*facts);
}

TEST(MissingOperatorsTest, AreMissingWhereKernelsOfTorchHaveNone) {
  Sketch all;
  draw_launches(all, 100);
  EXPECT_EQ(missing_in(all), MissingOperators::kAll);
  Sketch of_thread;
  draw_launches(of_thread, 101);
  of_thread.op("aten::randn", 0, us(20), {.tid = 100});
  EXPECT_EQ(missing_in(of_thread), MissingOperators::kOfThread);
}

// One operator on the thread that launches, kernels that are not PyTorch's, nodes of a CUDA graph.
TEST(MissingOperatorsTest, AreNotMissingElsewhere) {
  Sketch with_operator;
  draw_launches(with_operator, 100);
  with_operator.op("aten::gelu", 0, us(20), {.tid = 100});
  EXPECT_EQ(missing_in(with_operator), MissingOperators::kNone);
  Sketch other_program;
  draw_launches(other_program, 100, "my_kernel(float*)");
  EXPECT_EQ(missing_in(other_program), MissingOperators::kNone);
  Sketch graph;
  draw_launches(graph, 100, kGelu, "cudaGraphLaunch");
  EXPECT_EQ(missing_in(graph), MissingOperators::kNone);
}

TEST(MissingOperatorsTest, TheHeadlineSaysSo) {
  Sketch sketch;
  draw_launches(sketch, 101);
  sketch.op("aten::randn", 0, us(20), {.tid = 100});
  const Trace trace = sketch.trace();
  const auto facts = gather_facts(trace);
  const auto explanation = run_rules(*facts);
  ASSERT_TRUE(explanation);
  EXPECT_NE(explanation->headline.pattern.find("profile_all_threads=True"), std::string::npos);
  EXPECT_TRUE(is_worker_thread(*facts, facts->main_thread));
}

// Thread 100 began process 100. Another one works for others, but not autograd's.
TEST(MissingOperatorsTest, AWorkerIsNoThreadOfAutogradAndNotTheFirst) {
  const auto is_worker = [](std::int64_t tid, std::string_view op) {
    Sketch sketch;
    draw_launches(sketch, tid);
    sketch.op(op, 0, us(20), {.tid = tid});
    const Trace trace = sketch.trace();
    const auto facts = gather_facts(trace);
    return is_worker_thread(*facts, facts->main_thread);
  };
  EXPECT_TRUE(is_worker(101, "aten::gelu"));
  EXPECT_FALSE(is_worker(100, "aten::gelu"));
  EXPECT_FALSE(is_worker(101, "autograd::engine::evaluate_function: GeluBackward0"));
}

}  // namespace
}  // namespace lanescope::explain
