#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnArray {
  std::string_view type = "double", cast_to = "c10::BFloat16", dims = "[128, 12288]";
  bool has_numpy = true;
};

// 500 us of NumPy, a copy of 100 us to the GPU, a cast of 20 us there.
std::optional<Finding> find_double_array(const DrawnArray& drawn) {
  const std::string dims = "[" + std::string(drawn.dims) + "]";
  const std::string both = "[" + std::string(drawn.dims) + ", " + std::string(drawn.dims) + "]";
  const auto types = [](std::string_view to, std::string_view from) {
    return R"([")" + std::string(to) + R"(", ")" + std::string(from) + R"("])";
  };
  const std::string one = R"([")" + std::string(drawn.type) + R"("])";
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    p.kernel("gemm", 50).wait();
    if (drawn.has_numpy)
      p.sketch().slice("python_function",
                       "<built-in method astype of numpy.ndarray object at 0x7f>",
                       ProgramSketch::at(p.cpu_us() + 5), us(90));
    p.pass(500);
    p.begin_op("aten::lift_fresh", {.input_dims = dims, .input_types = one}).end();
    p.begin_op("aten::to", {.input_dims = dims, .input_types = one});
    p.begin_op("aten::copy_", {.input_dims = both, .input_types = types(drawn.type, drawn.type)});
    p.copy(100, 12'582'912, "Memcpy HtoD (Pageable -> Device)").end().end();
    p.begin_op("aten::to", {.input_dims = dims, .input_types = one});
    p.begin_op("aten::copy_",
               {.input_dims = both, .input_types = types(drawn.cast_to, drawn.type)});
    p.kernel("cast", 20).end().end();
  });
  return find_by_rule(program.trace(), "double-array");
}

TEST(DoubleArrayTest, CountsNumPysWorkTheCopyAndTheCast) {
  const auto finding = find_double_array({});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).integer, 12'582'912);
  EXPECT_EQ(finding->brief.values.at(1).text, "bf16");
  // Half of 500 us of code, of a copy and a cast of 120 us, and of the few us around their launches.
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 310'000, 10'000);
  EXPECT_NE(finding->action.pattern.find("np.float32"), std::string::npos);
}

TEST(DoubleArrayTest, LeavesOutCodeWithoutNumPy) {
  const auto finding = find_double_array({.has_numpy = false});
  ASSERT_TRUE(finding);
  EXPECT_LT(finding->at_stake_ns, 70'000);
}

// float32 already; float64 that stays; a small array.
TEST(DoubleArrayTest, IsQuietAboutOtherArrays) {
  EXPECT_FALSE(find_double_array({.type = "float"}));
  EXPECT_FALSE(find_double_array({.cast_to = "double"}));
  EXPECT_FALSE(find_double_array({.dims = "[128, 512]"}));
}

}  // namespace
}  // namespace lanescope::explain
