#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using testing::ProgramSketch;

Fields system_fields(std::string_view dims = "[[8, 16, 16], [8, 16, 2]]") {
  return {.input_dims = std::string(dims)};
}

struct DrawnFactors {
  std::string_view again = "aten::linalg_solve_ex";
  std::string_view dims = "[[8, 16, 16], [8, 16, 2]]";
  std::string_view node = "SolveBackward";
};

// A step on the CPU: Solve factors in 100 us; its node factors again in 80 us.
Trace draw_factors(const DrawnFactors& drawn) {
  ProgramSketch program;
  std::int64_t number = 10;
  program.steps(4, [&](ProgramSketch& p) {
    ++number;
    p.begin_op("Solve", {.sequence = number, .fwd_thread = 0});
    p.begin_op("aten::linalg_lu_factor_ex", system_fields()).pass(98).end().end();
    const std::string node = "autograd::engine::evaluate_function: " + std::string(drawn.node);
    p.begin_op(node, {.sequence = number, .fwd_thread = 1});
    p.begin_op(drawn.node, {.sequence = number, .fwd_thread = 1});
    p.begin_op(drawn.again, system_fields(drawn.dims));
    p.pass(78).end().end().end();
  });
  return program.trace();
}

TEST(FactoredAgainTest, FindsTheSecondTimeInTheBackwardPass) {
  const auto finding = find_by_rule(draw_factors({}), "factored-again");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(80));
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::linalg_solve_ex");
  EXPECT_EQ(finding->brief.values.at(1).text, "aten::linalg_lu_factor_ex");
  EXPECT_NE(finding->action.pattern.find("adjoint=True"), std::string::npos);
}

TEST(FactoredAgainTest, IsQuietAboutOtherMatricesAndOtherFactors) {
  const auto is_reported = [](const DrawnFactors& drawn) {
    return find_by_rule(draw_factors(drawn), "factored-again").has_value();
  };
  EXPECT_FALSE(is_reported({.dims = "[[8, 4, 4], [8, 4, 2]]"}));
  EXPECT_FALSE(is_reported({.again = "aten::linalg_cholesky_ex"}));
  EXPECT_FALSE(is_reported({.again = "aten::linalg_lu_solve"}));  // uses the factors
  EXPECT_FALSE(is_reported({.node = "LinalgSolveExBackward0"}));  // torch's own
}

// Each step solves with a matrix of 512 rows for 2 ms, and runs another operator.
Trace draw_solves(std::string_view other, std::string_view dims, std::int64_t other_us) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op(other, {.input_dims = std::string(dims), .input_types = R"(["float", ""])"});
    p.pass(other_us).end();
    p.begin_op("aten::linalg_solve",
               {.input_dims = "[[512, 512], [512, 4]]", .input_types = R"(["float", "float"])"});
    p.pass(1998).end();
  });
  return program.trace();
}

TEST(FactoredAgainTest, FindsAMatrixThatNothingMakes) {
  const auto finding =
      find_by_rule(draw_solves("aten::add_", "[[512, 4], []]", 500), "factored-again");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(2000));
  EXPECT_NE(finding->action.pattern.find("Factor it once"), std::string::npos);
}

TEST(FactoredAgainTest, IsQuietAboutAMatrixThatAnOperatorMayMake) {
  const auto is_reported = [](std::string_view other, std::string_view dims, std::int64_t time_us) {
    return find_by_rule(draw_solves(other, dims, time_us), "factored-again").has_value();
  };
  EXPECT_FALSE(is_reported("aten::add_", "[[512, 512], []]", 500));
  EXPECT_FALSE(is_reported("aten::cdist", "[[512, 3], []]", 500));
  EXPECT_FALSE(is_reported("my::kernel_matrix", "[[512, 3], []]", 500));  // its result is not known
}

// det and inv one after the other, and what runs between them.
Trace draw_neighbours(std::string_view second, std::string_view between) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.begin_op("aten::linalg_slogdet", system_fields("[[8, 16, 16]]")).pass(48).end();
    p.begin_op(between.empty() ? "aten::sum" : "aten::add",
               {.input_dims = between.empty() ? "[[8]]" : std::string(between)});
    p.end();
    p.begin_op(second, system_fields("[[8, 16, 16]]")).pass(58).end();
  });
  return program.trace();
}

TEST(FactoredAgainTest, FindsNeighboursThatNeedTheSameFactors) {
  const auto finding = find_by_rule(draw_neighbours("aten::linalg_inv_ex", {}), "factored-again");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(60));
  // The same call for another matrix, and a matrix that is made between them.
  EXPECT_FALSE(find_by_rule(draw_neighbours("aten::linalg_slogdet", {}), "factored-again"));
  EXPECT_FALSE(find_by_rule(draw_neighbours("aten::linalg_inv_ex", "[[8, 16, 16], [16, 16]]"),
                            "factored-again"));
}

// The inverse is multiplied by a vector between them, which makes no such matrix; or by a matrix, which does.
TEST(FactoredAgainTest, LooksBeyondProductsOfAnotherSize) {
  const auto is_reported = [](std::string_view dims) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.begin_op("aten::inverse", system_fields("[[16, 16]]")).pass(48).end();
      p.begin_op("aten::matmul",
                 {.input_dims = std::string(dims), .input_types = R"(["double", "double"])"});
      p.end();
      p.begin_op("aten::logdet", system_fields("[[16, 16]]")).pass(58).end();
    });
    return find_by_rule(program.trace(), "factored-again").has_value();
  };
  EXPECT_TRUE(is_reported("[[16], [16, 16]]"));
  EXPECT_TRUE(is_reported("[[2, 16], [16, 16]]"));
  EXPECT_FALSE(is_reported("[[16, 16], [16, 16]]"));
}

// Without shapes: inverse, a product of `between_us`, and logdet with `pieces` kernels in its decomposition. That of the inverse has 40
// kernels of 10 us.
std::optional<Finding> finding_by_work(int pieces, std::int64_t between_us,
                                       std::string_view second = "aten::logdet") {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto factor = [&](std::string_view call, int kernels) {
      p.begin_op(call).begin_op("aten::linalg_lu_factor_ex");
      for (int k = 0; k < kernels; ++k) p.kernel("getrf", 10);
      p.end().end();
    };
    factor("aten::inverse", 40);
    p.op("aten::matmul", {}, "gemv", between_us);
    factor(second, pieces);
  });
  return find_by_rule(program.trace(), "factored-again");
}

// A decomposition of 400 us, and 8 us between: a fiftieth.
TEST(FactoredAgainTest, ComparesTheWorkWhereSizesAreNotRecorded) {
  const auto finding = finding_by_work(40, 8);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(400));
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::logdet");
  EXPECT_NE(finding->action.pattern.find("If it is the same"), std::string::npos);
  EXPECT_FALSE(finding_by_work(41, 8));  // another size
  EXPECT_FALSE(finding_by_work(40, 9));  // may make another matrix
  EXPECT_FALSE(finding_by_work(40, 8, "aten::inverse"));
  EXPECT_FALSE(finding_by_work(40, 8, "my::solver"));
}

}  // namespace
}  // namespace lanescope::explain
