#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

struct DrawnPython {
  const char* function = "tree.py(40): find";
  bool has_operator = false;     // in each call
  bool is_waited_for = true;     // the GPU has nothing to do meanwhile
  const char* inside = nullptr;  // a frame that holds 15 of the 20 us of a call
};

// Steps of 20 calls of 20 us, and of a kernel of 100 us. `sample` makes the calls, `step` calls `sample`.
Trace draw_python(const DrawnPython& drawn) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const auto frame = [&](const char* label, std::int64_t from_us, std::int64_t to_us) {
      p.sketch().slice("python_function", label, ProgramSketch::at(from_us), us(to_us - from_us));
    };
    const std::int64_t begin = p.cpu_us();
    p.kernel("gemm", drawn.is_waited_for ? 100 : 900);
    if (drawn.is_waited_for) p.wait();
    const std::int64_t sample = p.cpu_us();
    for (int call = 0; call < 20; ++call) {
      const std::int64_t at = p.cpu_us();
      if (drawn.has_operator)
        p.cpu_op("aten::add", 5).pass(15);
      else
        p.pass(20);
      frame(drawn.function, at, at + 20);
      if (drawn.inside) frame(drawn.inside, at + 2, at + 17);
    }
    frame("tree.py(50): sample", sample, p.cpu_us());
    if (!drawn.is_waited_for) p.wait();
    p.pass(5);
    frame("train.py(7): step", begin, p.cpu_us());
  });
  return program.trace();
}

// 20 calls of 20 us; `sample` itself has nothing left, and `step` launches.
TEST(OwnPythonTest, NamesTheFunctionWithItsCalls) {
  const auto finding = find_by_rule(draw_python({}), "own-python");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(400));
  EXPECT_EQ(finding->sample_count, 60u);  // the first step is left out
  EXPECT_EQ(finding->verdict.values.at(0).text, "find (tree.py:40)");
  EXPECT_EQ(finding->verdict.values.at(1).integer, 20);
  EXPECT_EQ(finding->brief.values.at(0).text, "find (tree.py:40)");
  EXPECT_EQ(finding->brief.values.at(1).integer, us(400));
}

// Of each call 5 us are its own, 100 us per step: what a library does in it is library-call's.
TEST(OwnPythonTest, CountsNoLibraries) {
  const auto finding =
      find_by_rule(draw_python({.inside = "numpy/lib/npyio.py(10): load"}), "own-python");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(100));
  // list.append is a part of plain code.
  const auto with_list = find_by_rule(
      draw_python({.inside = "<built-in method append of list object at 0x7f00>"}), "own-python");
  ASSERT_TRUE(with_list);
  EXPECT_EQ(with_list->at_stake_ns, us(400));
}

TEST(OwnPythonTest, IsQuietAboutOtherTime) {
  const auto is_reported = [](const DrawnPython& drawn) {
    return find_by_rule(draw_python(drawn), "own-python").has_value();
  };
  EXPECT_FALSE(is_reported({.has_operator = true}));
  EXPECT_FALSE(is_reported({.is_waited_for = false}));  // the GPU works meanwhile
  EXPECT_FALSE(is_reported({.function = "numpy/core.py(1): where"}));
}

}  // namespace
}  // namespace lanescope::explain
