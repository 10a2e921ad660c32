#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
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

// The gradient of a permuted view: of parts that unbind() took, or of one tensor. In the forward pass it is the program's copy.
TEST(LayoutCopiesTest, KnowsGradientsOfPermutedViews) {
  const auto action = [](std::initializer_list<const char*> nodes) {
    const auto finding = find_in_steps("layout-copies", [&](ProgramSketch& p) {
      p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 180);
      for (const char* node : nodes) {
        const std::string name = std::string("autograd::engine::evaluate_function: ") + node;
        p.begin_op(name);
        if (node == *(nodes.end() - 1)) {
          p.begin_op("aten::reshape").begin_op("aten::clone");
          p.op("aten::copy_", shapes("[[1024, 512], [1024, 512], []]", kSameTypes, kTransposed),
               "copy_kernel", 20);
          p.end().end();
        }
        p.end();
      }
    });
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_NE(action({"UnbindBackward0", "PermuteBackward0", "ViewBackward0"}).find("chunk"),
            std::string::npos);
  EXPECT_NE(action({"MmBackward0", "PermuteBackward0", "ViewBackward0"}).find("forward pass"),
            std::string::npos);
  EXPECT_NE(action({"UnbindBackward0", "PermuteBackward0", "CloneBackward0"}).find("forward pass"),
            std::string::npos);
}

}  // namespace
}  // namespace lanescope::explain
