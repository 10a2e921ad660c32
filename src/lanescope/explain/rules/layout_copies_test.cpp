#include <gtest/gtest.h>

#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_kernels_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

void draw_contiguous(ProgramSketch& p, std::string_view types, std::string_view strides) {
  p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 180);
  p.begin_op("aten::contiguous").begin_op("aten::clone");
  p.op("aten::copy_", shapes("[[1024, 512], [1024, 512], []]", types, strides), "copy_kernel", 20);
  p.end().end();
}

constexpr char kSameTypes[] = R"(["float", "float", "Scalar"])";

constexpr char kTransposed[] = "[[512, 1], [1, 1024], []]";

TEST(LayoutCopiesTest, NamesWhatCalledTheCopy) {
  const auto finding = find_in_steps(
      "layout-copies", [](ProgramSketch& p) { draw_contiguous(p, kSameTypes, kTransposed); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 20'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "aten::contiguous");
  // One copy per step. A copy that many calls read may be worth its time.
  EXPECT_NE(finding->brief.pattern.find("per step"), std::string::npos);
  EXPECT_NE(finding->action.pattern.find("only few calls read"), std::string::npos);
}

TEST(LayoutCopiesTest, IsQuietAboutOtherCopies) {
  // Inside of an operator on sparse tensors.
  EXPECT_FALSE(find_in_steps("layout-copies", [](ProgramSketch& p) {
    p.begin_op("aten::_sparse_mm");
    draw_contiguous(p, kSameTypes, kTransposed);
    p.end();
  }));
  // A copy of the same layout, a conversion, an expansion.
  EXPECT_FALSE(find_in_steps("layout-copies", [](ProgramSketch& p) {
    draw_contiguous(p, kSameTypes, "[[512, 1], [512, 1], []]");
  }));
  EXPECT_FALSE(find_in_steps("layout-copies", [](ProgramSketch& p) {
    draw_contiguous(p, R"(["float", "c10::BFloat16", "Scalar"])", kTransposed);
  }));
  EXPECT_FALSE(find_in_steps("layout-copies", [](ProgramSketch& p) {
    draw_contiguous(p, kSameTypes, "[[512, 1], [0, 1], []]");
  }));
  // Into rows of a larger tensor.
  EXPECT_FALSE(find_in_steps("layout-copies", [](ProgramSketch& p) {
    draw_contiguous(p, kSameTypes, "[[2048, 1], [512, 1], []]");
  }));
  EXPECT_EQ(
      state_in_steps("layout-copies", [](ProgramSketch& p) { draw_contiguous(p, kSameTypes, ""); }),
      RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
