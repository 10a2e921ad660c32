#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// One linear layer over [8, 64] and what follows it.
struct SketchedLinear {
  int columns = 64;
  std::vector<std::string> next;
};

// The GPU waits for each launch: 20 us of the CPU for 2 us of work.
std::optional<Finding> find_siblings(const std::vector<SketchedLinear>& layers) {
  return find_in_steps("sibling-products", [&](ProgramSketch& p) {
    for (const SketchedLinear& layer : layers) {
      p.begin_op("aten::linear",
                 shapes("[[8, 64], [" + std::to_string(layer.columns) + ", 64]]", kFloat));
      p.pass(20).launch({.us = 2}).end();
      for (const std::string& op : layer.next) p.begin_op(op).end();
    }
    p.begin_op("aten::softmax").pass(20).launch({.us = 2}).end();
  });
}

TEST(SiblingProductsTest, SeesProductsBetweenWhichOnlyViewsAre) {
  const std::vector<std::string> heads = {"aten::view", "aten::transpose"};
  const auto finding = find_siblings({{64, heads}, {64, heads}, {64, heads}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->sample_count, 3U * 3);  // three products in three steady steps
  EXPECT_EQ(finding->brief.values.at(0).integer, 3);
  EXPECT_EQ(finding->brief.values.at(2).text, "[8, 64]");
}

TEST(SiblingProductsTest, SeesResultsThatDoNotFitTheNextInput) {
  EXPECT_TRUE(find_siblings({{128, {}}, {128, {}}}));
}

TEST(SiblingProductsTest, IsQuietAboutChainsAndLayers) {
  // Each may take the result of the one before it.
  EXPECT_FALSE(find_siblings({{64, {}}, {64, {}}, {64, {}}}));
  // Something between them makes the next input.
  EXPECT_FALSE(find_siblings({{64, {"aten::relu"}}, {64, {"aten::relu"}}, {64, {}}}));
  // A loop over many layers, which is another fault.
  const std::vector<std::string> view = {"aten::view"};
  EXPECT_FALSE(find_siblings(std::vector<SketchedLinear>(12, SketchedLinear{64, view})));
}

}  // namespace
}  // namespace lanescope::explain
