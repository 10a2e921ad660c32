#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnCache {
  std::string_view end = "128";                 // of 1,024 places
  std::string_view written_by = "aten::copy_";  // the first that takes the slice
  std::string_view slice = "[[8, 128, 512], [8, 128, 512]]";
  bool is_read_whole = false;
};

// A step on the CPU: zeros of 8 x 1,024 x 512 floats, 16 MiB, whose fill takes 60 us; a slice of them is written, 20 us,
// and read, 100 us.
Trace draw_cache(const DrawnCache& drawn) {
  constexpr std::string_view kFloats = R"(["float", "float", "Scalar"])";
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto begin = [&](std::string_view op, std::string_view dims, std::string_view types,
                           std::string_view concrete = "") {
      p.begin_op(op, {.input_dims = std::string(dims),
                      .input_types = std::string(types),
                      .concrete_inputs = std::string(concrete)});
    };
    begin("aten::zeros", "[[], [], [], [], []]", R"(["ScalarList", "", "", "", ""])",
          R"(["[8, 1024, 512]", "", "", "", ""])");
    begin("aten::zero_", "[[8, 1024, 512]]", R"(["float"])");
    p.pass(58).end().end();
    begin("aten::slice", "[[8, 1024, 512], [], [], [], []]",
          R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])",
          R"(["", "1", "0", ")" + std::string(drawn.end) + R"(", "1"])");
    p.end();
    begin(drawn.written_by, drawn.slice, kFloats);
    p.pass(18).end();
    begin("aten::bmm", "[[8, 16, 128], [8, 128, 512]]", R"(["float", "float"])");
    p.pass(98).end();
    if (drawn.is_read_whole) {
      begin("aten::sum", "[[8, 1024, 512], []]", R"(["float", ""])");
      p.pass(8).end();
    }
  });
  return program.trace();
}

TEST(ClearedBuffersTest, CountsFillsOfWhatIsWrittenBeforeItIsRead) {
  const auto finding = find_by_rule(draw_cache({}), "cleared-buffers");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(60));
  EXPECT_EQ(finding->brief.values.at(0).text, "aten::zeros");
  EXPECT_EQ(finding->brief.values.at(1).integer, 16 << 20);
  EXPECT_NEAR(finding->brief.values.at(2).real, 1.0 / 8, 1e-6);
  EXPECT_EQ(finding->spared_calls.size(), 3u);
}

TEST(ClearedBuffersTest, IsQuietIfTheZerosMayBeRead) {
  const auto is_reported = [](const DrawnCache& drawn) {
    return find_by_rule(draw_cache(drawn), "cleared-buffers").has_value();
  };
  EXPECT_FALSE(is_reported({.written_by = "aten::add_"}));  // adds to the zeros
  EXPECT_FALSE(is_reported({.is_read_whole = true}));
  EXPECT_FALSE(
      is_reported({.end = "900", .slice = "[[8, 900, 512], [8, 900, 512]]"}));  // most of it
  EXPECT_FALSE(is_reported({.slice = "[[8, 9, 512], [8, 9, 512]]"}));  // nothing writes the slice
}

}  // namespace
}  // namespace lanescope::explain
