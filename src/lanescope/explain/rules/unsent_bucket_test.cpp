#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnBucket {
  std::string_view scaled = "[[131072], []]";  // empty: it is not scaled
  std::string_view reader = {};                // of the joined tensor, before the copies
  int copies = 2;
  std::string_view later = {};  // dimensions that a later operator takes
  bool sends = false;
};

// A step on the CPU: 300 us of a layer; two gradients of [65536] are joined, 40 us, scaled, 20 us, and copied back, 25 us each.
Trace draw_bucket(const DrawnBucket& drawn) {
  constexpr char kFloats[] = R"(["float", "float"])";
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto call = [&](std::string_view op, std::string_view dims, std::string_view types,
                          std::int64_t length_us) {
      p.begin_op(op, {.input_dims = std::string(dims), .input_types = std::string(types)});
      p.pass(length_us - 2).end();
    };
    call("aten::linear", "[[64, 256], [256, 256]]", kFloats, 300);
    call("aten::cat", "[[[65536], [65536]], []]", R"(["TensorList", "Scalar"])", 40);
    if (drawn.sends) call("c10d::allreduce_", "[[[131072]]]", R"(["TensorList"])", 30);
    if (!drawn.reader.empty()) call(drawn.reader, "[[131072]]", kFloats, 10);
    if (!drawn.scaled.empty()) call("aten::div_", drawn.scaled, R"(["float", "long int"])", 20);
    for (int i = 0; i < drawn.copies; ++i) {
      call("aten::slice", "[[131072], [], [], [], []]", R"(["float", "", "", "", ""])", 3);
      call("aten::view_as", "[[65536], [256, 256]]", kFloats, 3);
      call("aten::copy_", "[[256, 256], [256, 256], []]", R"(["float", "float", "Scalar"])", 25);
    }
    if (!drawn.later.empty()) call("aten::add", drawn.later, kFloats, 10);
  });
  return program.trace();
}

TEST(UnsentBucketTest, CountsTheWayThereAndBack) {
  const auto finding = find_by_rule(draw_bucket({}), "unsent-bucket");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(110));
  EXPECT_EQ(finding->brief.values.at(0).integer, 2);
  EXPECT_NE(finding->action.pattern.find("_foreach_div_"), std::string::npos);
  const auto unscaled = find_by_rule(draw_bucket({.scaled = ""}), "unsent-bucket");
  ASSERT_TRUE(unscaled);
  EXPECT_EQ(unscaled->at_stake_ns, us(90));
  EXPECT_EQ(unscaled->action.pattern.find("_foreach_div_"), std::string::npos);
}

TEST(UnsentBucketTest, IsQuietIfTheJoinedTensorIsUsed) {
  const auto is_reported = [](const DrawnBucket& drawn) {
    return find_by_rule(draw_bucket(drawn), "unsent-bucket").has_value();
  };
  EXPECT_FALSE(is_reported({.sends = true}));
  EXPECT_FALSE(is_reported({.reader = "aten::linalg_vector_norm"}));  // gradients are clipped
  EXPECT_FALSE(is_reported({.copies = 1}));
  EXPECT_FALSE(is_reported({.later = "[[131072], [131072]]"}));
  EXPECT_FALSE(is_reported({.scaled = "[[65536], []]"}));  // another tensor is scaled
}

}  // namespace
}  // namespace lanescope::explain
