#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_compiled_test.h"
#include "lanescope/explain/rules/drawn_elementwise_test.h"

namespace lanescope::explain {
namespace {

TEST(CompileLayersTest, NamesTheTimeOfEachLayerPerCall) {
  const auto finding = find_by_rule(compiled_call(200).trace(), "compile-layers");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_EQ(finding->verdict.values[0].integer, 20'000);  // lookup
  EXPECT_EQ(finding->verdict.values[1].integer, 10'000);  // region
  EXPECT_EQ(finding->verdict.values[2].integer, 0);       // prologue
  EXPECT_EQ(finding->verdict.values[3].integer, 20'000);  // graph, its operator left out
}

TEST(CompileLayersTest, IsQuietInAnEagerProgram) {
  EXPECT_FALSE(find_by_rule(after_matmul({}).trace(), "compile-layers"));
}

}  // namespace
}  // namespace lanescope::explain
