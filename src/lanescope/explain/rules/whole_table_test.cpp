#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnTable {
  std::string_view rows = "100000";
  std::string_view updated = "[[[100000, 8], [16, 8]], [[100000, 8], [16, 8]], []]";
  std::string_view range = "Optimizer.step#SGD.step";
  bool takes_norm = false, scales = false;  // 50 and 80 us, of the table and the small tensor
};

// Four steps: the gradient of a table takes 100 us of the GPU, the update of two tensors 200 us.
Trace draw_table(const DrawnTable& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.op("aten::embedding_dense_backward",
         {.input_dims = "[[64, 8], [64], [], [], []]",
          .input_types = R"(["float", "long int", "Scalar", "Scalar", "Scalar"])",
          .concrete_inputs = R"(["", "", ")" + std::string(drawn.rows) + R"(", "-1", "False"])"},
         "embedding_backward", 100);
    const std::string list = "[[[100000, 8], [16, 8]], []]";
    if (drawn.takes_norm) p.op("aten::_foreach_norm", {.input_dims = list}, "norm", 50);
    if (drawn.scales) p.op("aten::_foreach_mul_", {.input_dims = list}, "scale", 80);
    p.begin(drawn.range).pass(1);
    p.op("aten::_foreach_add_", {.input_dims = std::string(drawn.updated)}, "multi_tensor", 200);
    p.end();
  });
  return program.trace();
}

// Of 100,016 rows that are updated, 100,000 are the table's.
TEST(WholeTableTest, CountsTheGradientAndTheUpdateOfTheTable) {
  const auto finding = find_by_rule(draw_table({}), "whole-table");
  ASSERT_TRUE(finding);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns),
              static_cast<double>(us(100)) + static_cast<double>(us(200)) * 100'000 / 100'016, 2.0);
  EXPECT_EQ(finding->brief.values.at(0).text, "[100000, 8]");
  EXPECT_EQ(finding->brief.values.at(1).integer, 64);
}

TEST(WholeTableTest, IsQuietIfMuchOfTheTableIsMetOrItIsNotUpdated) {
  const auto is_reported = [](const DrawnTable& drawn) {
    return find_by_rule(draw_table(drawn), "whole-table").has_value();
  };
  EXPECT_FALSE(is_reported({.rows = "500", .updated = "[[[500, 8]], [[500, 8]], []]"}));
  EXPECT_FALSE(is_reported({.updated = "[[[16, 8]], [[16, 8]], []]"}));  // another optimizer has it
  EXPECT_FALSE(is_reported({.range = "average"}));
}

TEST(WholeTableTest, NamesTheOptimizerThatTakesSparseGradients) {
  const auto sgd = find_by_rule(draw_table({}), "whole-table");
  ASSERT_TRUE(sgd);
  EXPECT_EQ(sgd->action.pattern, "Use {}(sparse=True), which {} supports");
  EXPECT_EQ(sgd->action.values.at(1).text, "SGD");
  const auto adam = find_by_rule(draw_table({.range = "Optimizer.step#AdamW.step"}), "whole-table");
  ASSERT_TRUE(adam);
  EXPECT_EQ(adam->action.pattern, "Use {}(sparse=True), and SparseAdam or Adagrad for the tables");
}

// Of norms and products of 130 us, the table has 100,000 of 100,016 rows.
TEST(WholeTableTest, ClippingCountsWhereNormsAreTakenAndGradientsScaled) {
  const auto clipped =
      find_by_rule(draw_table({.takes_norm = true, .scales = true}), "whole-table");
  ASSERT_TRUE(clipped);
  EXPECT_NEAR(static_cast<double>(clipped->at_stake_ns),
              static_cast<double>(us(100)) +
                  (static_cast<double>(us(200)) + static_cast<double>(us(130))) * 100'000 / 100'016,
              3.0);
  EXPECT_THAT(clipped->action.pattern, ::testing::HasSubstr("clip_grad_norm_ does not"));
  // A norm that is only logged is no clipping.
  const auto logged = find_by_rule(draw_table({.takes_norm = true}), "whole-table");
  ASSERT_TRUE(logged);
  EXPECT_LT(logged->at_stake_ns, us(301));
  EXPECT_THAT(logged->action.pattern, ::testing::Not(::testing::HasSubstr("clip_grad_norm_")));
}

// Nine or seven lookups in tables of 100,000 rows, each with a gradient of its own or not; then an update of lists without shapes. A product
// takes a weight of `width` x 8 numbers in the forward pass.
TEST(WholeTableTest, AdvisesOneTableForManyAndEstimatesListsWithoutShapes) {
  const auto find = [](int tables, bool own, int width) {
    constexpr char kNode[] = "autograd::engine::evaluate_function: ";
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.op("aten::mm",
           {.input_dims =
                "[[64, " + std::to_string(width) + "], [" + std::to_string(width) + ", 8]]",
            .input_types = R"(["float", "float"])"},
           "gemm", 20);
      for (int i = 0; i < tables; ++i) {
        p.begin_op(std::string(kNode) + "EmbeddingBackward0");
        p.op("aten::embedding_dense_backward",
             {.input_dims = "[[64, 8], [64], [], [], []]",
              .input_types = R"(["float", "long int", "Scalar", "Scalar", "Scalar"])",
              .concrete_inputs = R"(["", "", "100000", "-1", "False"])"},
             "embedding_backward", 100);
        p.end();
        if (own) p.begin_op(std::string(kNode) + "torch::autograd::AccumulateGrad").pass(1).end();
      }
      p.begin("Optimizer.step#Adam.step").pass(1);
      p.op("aten::_foreach_add_",
           {.input_dims = "[[], []]", .input_types = R"(["TensorList", ""])"}, "multi_tensor",
           2000);
      p.end();
    });
    return find_by_rule(program.trace(), "whole-table");
  };
  const auto many = find(9, true, 16);
  ASSERT_TRUE(many);
  EXPECT_THAT(many->action.pattern,
              ::testing::StartsWith("Make one {}(sparse=True) of all tables"));
  EXPECT_NEAR(static_cast<double>(many->at_stake_ns), static_cast<double>(us(2900)), us(5));
  EXPECT_FALSE(many->told_windows.empty());
  const auto few = find(7, true, 16), one = find(9, false, 16);
  ASSERT_TRUE(few && one);
  EXPECT_THAT(few->action.pattern, ::testing::StartsWith("Use {}(sparse=True)"));
  EXPECT_THAT(one->action.pattern, ::testing::StartsWith("Use {}(sparse=True)"));
  EXPECT_FALSE(find(1, true, 200'000));  // most of the parameters are the product's
}

// Without shapes, on a CPU: `tables` gradients of tables, and an optimizer that updates two parameters one by one.
TEST(WholeTableTest, KnowsWithoutShapesThatOnlyTablesAreUpdated) {
  const auto stake = [](int tables, const char* update) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < tables; ++i) p.cpu_op("aten::embedding_dense_backward", 50);
      p.begin("Optimizer.step#Adam.step");
      for (int i = 0; i < 2; ++i) p.cpu_op("aten::sqrt", 100).cpu_op(update, 200);
      p.end();
    });
    const auto finding = find_by_rule(program.trace(), "whole-table");
    return finding ? finding->at_stake_ns : 0;
  };
  EXPECT_EQ(stake(2, "aten::addcdiv_"), us(2 * 50 + 2 * 300));
  EXPECT_EQ(stake(1, "aten::addcdiv_"), 0);           // the other parameter may be no table
  EXPECT_EQ(stake(2, "aten::_foreach_addcdiv_"), 0);  // of how many parameters is not known
}

// Bags of two tables: gradients of 100 us each, an update of 300 us of which the tables have 300,000 of 300,016 rows. A bag of a
// small table is no cause.
TEST(WholeTableTest, CountsTheTablesOfBagsTogether) {
  const auto draw = [](const std::vector<std::string>& rows) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      std::string updated;
      for (const std::string& each : rows) {
        p.op("aten::_embedding_bag_dense_backward",
             {.input_dims = "[[16, 8], [64], [64], [16], [16], [], [], [], [], []]",
              .input_types =
                  R"(["float", "long int", "long int", "long int", "long int", "Scalar", )"
                  R"("Scalar", "Scalar", "", "Scalar"])",
              .concrete_inputs =
                  R"(["", "", "", "", "", ")" + each + R"(", "False", "0", "", "-1"])"},
             "compute_grad_weight", 100);
        updated += "[" + each + ", 8], ";
      }
      p.begin("Optimizer.step#Adam.step").pass(1);
      p.op("aten::_foreach_lerp_", {.input_dims = "[[" + updated + "[16, 8]], [], []]"},
           "multi_tensor", 300);
      p.end();
    });
    return find_by_rule(program.trace(), "whole-table");
  };
  const auto finding = draw({"100000", "200000"});
  ASSERT_TRUE(finding);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns),
              static_cast<double>(us(200)) + static_cast<double>(us(300)) * 300'000 / 300'016, 2.0);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 2);
  EXPECT_EQ(finding->brief.values.at(0).text, "[200000, 8]");
  EXPECT_EQ(finding->action.values.at(0).text, "nn.EmbeddingBag");
  EXPECT_FALSE(draw({"400", "500"}));
}

}  // namespace
}  // namespace lanescope::explain
