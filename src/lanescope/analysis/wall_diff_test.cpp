#include "lanescope/analysis/wall_diff.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

namespace lanescope::analysis {
namespace {

WorkGroup group(std::string name, std::string op, std::uint64_t count, std::int64_t time_ns,
                std::string dims = "") {
  return {std::move(name), std::move(op), std::move(dims), WorkClass::kCompute, count, time_ns, {}};
}

// Costs of `steps` steps; the wall is what is idle and what computes.
StepCosts side(std::int64_t steps, std::vector<WorkGroup> work, std::int64_t compute_ns,
               std::int64_t idle_ns, std::int64_t copy_ns = 0) {
  StepCosts costs;
  costs.step_count = steps;
  costs.work = std::move(work);
  costs.wall = {compute_ns + copy_ns + idle_ns, compute_ns, 0, copy_ns, idle_ns};
  costs.idle[static_cast<std::size_t>(IdleCause::kHostLate)] = idle_ns;
  return costs;
}

const KernelDiff* row_of(const WallDiff& diff, MatchKind kind) {
  for (const KernelDiff& row : diff.kernels)
    if (row.kind == kind) return &row;
  return nullptr;
}

// A, 2 steps: 4 gemm in 40 -> 20 a step. B, 1 step: 3 gemm in 36. One call more at 10: +10; three
// calls, each 2 longer: +6. Idle 20 / 2 -> 7: -3.
TEST(WallDiffTest, CallsAndTimeOfACallAreSeparateEffects) {
  const WallDiff diff = compute_wall_diff(side(2, {group("gemm", "aten::mm", 4, 40)}, 40, 20),
                                          side(1, {group("gemm", "aten::mm", 3, 36)}, 36, 7));
  EXPECT_EQ(diff.a.wall_ns, 30);
  EXPECT_EQ(diff.b.wall_ns, 43);
  EXPECT_EQ(diff.effects.calls_ns, 10);
  EXPECT_EQ(diff.effects.per_call_ns, 6);
  EXPECT_EQ(diff.effects.idle_ns[static_cast<std::size_t>(IdleCause::kHostLate)], -3);
  EXPECT_EQ(diff.effects.sum_ns(), 13);
}

// Kernels that overlap: a sum of 30 covers 24 in A; in B, 30 cover 30.
TEST(WallDiffTest, OverlapIsARowOfItsOwn) {
  const WallDiff diff = compute_wall_diff(side(1, {group("gemm", "", 3, 30)}, 24, 0),
                                          side(1, {group("gemm", "", 3, 30)}, 30, 0));
  EXPECT_EQ(diff.a.overlap_ns, -6);
  EXPECT_EQ(diff.b.overlap_ns, 0);
  EXPECT_EQ(diff.effects.overlap_ns, 6);
  EXPECT_EQ(diff.effects.per_call_ns, 0);
  EXPECT_EQ(diff.effects.sum_ns(), 6);
}

// gelu (10) and mul (8) of A run in one kernel of B (11); the add is gone, the softmax is new.
TEST(WallDiffTest, AFusedKernelTakesTheOperatorsInItsName) {
  const WallDiff diff = compute_wall_diff(
      side(1,
           {group("gelu_kernel", "aten::gelu", 1, 10), group("mul_kernel", "aten::mul_", 1, 8),
            group("add_kernel", "aten::add", 1, 4)},
           22, 0),
      side(1,
           {group("triton_poi_fused_gelu_mul_0", "triton_poi_fused_gelu_mul_0", 1, 11),
            group("softmax_kernel", "aten::_softmax", 1, 3)},
           14, 0));
  const KernelDiff* fused = row_of(diff, MatchKind::kFused);
  ASSERT_NE(fused, nullptr);
  EXPECT_EQ(fused->a.size(), 2u);
  EXPECT_EQ(fused->a_count, 2u);
  EXPECT_EQ(fused->b_count, 1u);
  EXPECT_EQ(fused->delta_ns(), -7);
  EXPECT_FALSE(fused->a_is_fused);
  EXPECT_EQ(diff.effects.fused_ns, -7);
  EXPECT_EQ(diff.effects.gone_ns, -4);
  EXPECT_EQ(diff.effects.new_ns, 3);
  EXPECT_EQ(diff.effects.sum_ns(), -8);
}

TEST(WallDiffTest, AnOperatorThatDoesTwoInOneTakesBoth) {
  const WallDiff diff = compute_wall_diff(
      side(1, {group("g1", "aten::mm", 1, 10), group("k1", "aten::add", 1, 4)}, 14, 0),
      side(1, {group("g2", "aten::addmm", 1, 11), group("triton_poi_fused_add_0", "", 1, 2)}, 13,
           0));
  const KernelDiff* fused = row_of(diff, MatchKind::kFused);
  ASSERT_NE(fused, nullptr);
  EXPECT_EQ(fused->a.size(), 2u);
  EXPECT_EQ(fused->b.size(), 2u);
  EXPECT_EQ(fused->delta_ns(), -1);
  // The other way round it is A that had them in one.
  const WallDiff back = compute_wall_diff(side(1, {group("g2", "aten::addmm", 1, 11)}, 11, 0),
                                          side(1, {group("g1", "aten::mm", 1, 10)}, 10, 0));
  ASSERT_NE(row_of(back, MatchKind::kFused), nullptr);
  EXPECT_TRUE(row_of(back, MatchKind::kFused)->a_is_fused);
}

TEST(WallDiffTest, AKernelThatChangedItsNameIsFoundThroughItsOperator) {
  const WallDiff diff = compute_wall_diff(
      side(1, {group("gemm_128", "aten::mm", 2, 20, "[[8]]"), group("x", "", 1, 5)}, 25, 0),
      side(1, {group("gemm_64", "aten::mm", 2, 30, "[[8]]"), group("y", "", 1, 5)}, 35, 0));
  const KernelDiff* changed = row_of(diff, MatchKind::kChanged);
  ASSERT_NE(changed, nullptr);
  EXPECT_EQ(changed->delta_ns(), 10);
  EXPECT_TRUE(changed->same_shapes);
  // Launched outside of operators, nothing says that x and y are the same thing.
  EXPECT_NE(row_of(diff, MatchKind::kNew), nullptr);
  EXPECT_NE(row_of(diff, MatchKind::kGone), nullptr);
  EXPECT_EQ(diff.effects.changed_ns, 10);
}

TEST(WallDiffTest, ShapesFirstThenTheNameThenTheOperatorAlone) {
  const WallDiff diff = compute_wall_diff(
      side(1, {group("k", "aten::add", 1, 10, "[4]"), group("k", "aten::add", 1, 20, "[8]")}, 30,
           0),
      side(1, {group("k", "aten::add", 1, 11, "[4]"), group("k", "aten::add", 1, 50, "[16]")}, 61,
           0));
  ASSERT_EQ(diff.kernels.size(), 2u);
  EXPECT_EQ(diff.kernels[0].delta_ns(), 30);
  EXPECT_FALSE(diff.kernels[0].same_shapes);
  EXPECT_EQ(diff.kernels[1].delta_ns(), 1);
  EXPECT_TRUE(diff.kernels[1].same_shapes);
}

// 10 ns in 3 steps, twice, and 1 of idle: parts of the running sum rounded down, 3 + 3 + 1 = 7 =
// 21 / 3.
TEST(WallDiffTest, PartsOfAStepAreWholeNanosecondsThatAddUp) {
  const WallDiff diff = compute_wall_diff(
      side(3, {group("a", "", 3, 10), group("b", "", 3, 10)}, 20, 1), side(1, {}, 0, 0));
  EXPECT_EQ(diff.a.wall_ns, 7);
  EXPECT_EQ(diff.a.kernels_ns, 6);
  EXPECT_EQ(diff.a.idle_ns[static_cast<std::size_t>(IdleCause::kHostLate)], 1);
  EXPECT_EQ(diff.effects.gone_ns, -6);
  EXPECT_EQ(diff.effects.sum_ns(), -7);
}

StepCosts random_side(std::mt19937_64& random) {
  static const char* const kNames[] = {"gemm", "add", "triton_poi_fused_add_mul_0",
                                       "triton_red_fused_sum_1", ""};
  static const char* const kOps[] = {"aten::mm", "aten::add", "aten::mul_", "aten::sum", ""};
  const auto number = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  const bool huge = number(9) == 0;
  const std::int64_t most = huge ? std::int64_t{1} << 58 : 1000;
  StepCosts costs;
  costs.step_count = number(7);
  for (std::int64_t i = number(12); i > 0; --i) {
    costs.work.push_back(group(kNames[number(4)], kOps[number(4)],
                               static_cast<std::uint64_t>(1 + number(9)), number(most),
                               number(1) ? "[[4]]" : ""));
    if (number(3) == 0) costs.work.back().work = WorkClass::kCommunication;
  }
  costs.wall.compute_ns = number(most);
  costs.wall.exposed_communication_ns = number(most);
  costs.wall.exposed_copy_ns = number(most);
  for (std::int64_t& each : costs.idle) {
    each = number(most / 16);
    costs.wall.idle_ns += each;
  }
  costs.wall.wall_ns = costs.wall.compute_ns + costs.wall.exposed_communication_ns +
                       costs.wall.exposed_copy_ns + costs.wall.idle_ns;
  return costs;
}

TEST(WallDiffTest, EffectsAddUpToTheDifferenceOfTheWallsOnRandomCosts) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 3000; ++round) {
    const StepCosts a = random_side(random), b = random_side(random);
    const WallDiff diff = compute_wall_diff(a, b);
    EXPECT_EQ(diff.a.wall_ns, a.wall.wall_ns / std::max<std::int64_t>(1, a.step_count));
    EXPECT_EQ(diff.b.wall_ns, b.wall.wall_ns / std::max<std::int64_t>(1, b.step_count));
    EXPECT_EQ(diff.effects.sum_ns(), diff.b.wall_ns - diff.a.wall_ns);
    std::int64_t kernels = 0;
    for (const KernelDiff& row : diff.kernels) kernels += row.delta_ns();
    EXPECT_EQ(kernels, diff.b.kernels_ns - diff.a.kernels_ns);
    for (const WallLevels* side : {&diff.a, &diff.b})
      EXPECT_EQ(std::accumulate(side->idle_ns.begin(), side->idle_ns.end(),
                                side->kernels_ns + side->overlap_ns +
                                    side->exposed_communication_ns + side->exposed_copy_ns),
                side->wall_ns);
    // The other way round every row turns its sign, but for the split into calls and their time.
    const WallDiff back = compute_wall_diff(b, a);
    EXPECT_EQ(back.effects.sum_ns(), -diff.effects.sum_ns());
    EXPECT_EQ(back.kernels.size(), diff.kernels.size());
  }
}

TEST(WallDiffTest, ATraceAgainstItselfIsAllZeroes) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 500; ++round) {
    const StepCosts a = random_side(random);
    const WallDiff diff = compute_wall_diff(a, a);
    EXPECT_EQ(diff.effects.sum_ns(), 0);
    for (const KernelDiff& row : diff.kernels) {
      EXPECT_EQ(row.kind, MatchKind::kSame);
      EXPECT_EQ(row.delta_ns(), 0);
      EXPECT_EQ(row.count_ns, 0);
      EXPECT_EQ(row.per_call_ns, 0);
    }
  }
}

}  // namespace
}  // namespace lanescope::analysis
