#include <gtest/gtest.h>

#include <string>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

constexpr char kFind[] = "<frozen importlib._bootstrap>(1165): _find_and_load";

// One sample a millisecond, on the track of thread 100.
void sampled(ProgramSketch& program, const char* name, std::int64_t from_ms, std::int64_t ms) {
  TraceBuilder& builder = program.sketch().builder();
  Scalar pid, tid;
  pid.number = 100;
  tid.is_text = true;
  tid.text = builder.intern("100 sampled");
  builder.args().begin();
  builder.args().add_int(builder.intern("Samples"), ArgKey::kSamples, ms);
  builder.args().add_int(builder.intern("Self samples"), ArgKey::kSelfSamples, 0);
  const ArgsId args = builder.args().end();
  builder.add_slice(builder.thread_track(pid, tid), builder.category("python_sample"),
                    builder.intern(name), us(from_ms * 1000), us(ms * 1000), args);
}

// 400 ms of `torch`, with an import of `sympy` inside that counts once; 100 ms of `mine`; then the
// program runs to 1000 ms.
Trace draw_import_time(std::int64_t torch_ms) {
  ProgramSketch program;
  program.launch({.us = 40});
  sampled(program, "train.py(1): <module>", 0, 1000);
  sampled(program, kFind, 0, torch_ms);
  sampled(program, "torch/__init__.py(1): <module>", 0, torch_ms);
  sampled(program, kFind, 2, torch_ms / 2);
  sampled(program, "sympy/__init__.py(1): <module>", 2, torch_ms / 2);
  sampled(program, kFind, 500, torch_ms / 4);
  sampled(program, "mine.py(1): <module>", 500, torch_ms / 4);
  return program.trace();
}

TEST(ImportTimeTest, OutermostImportsAreNamedByTheirModule) {
  const auto finding = find_by_rule(draw_import_time(400), "import-time");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kOnce);
  EXPECT_EQ(finding->at_stake_ns, us(500'000));
  EXPECT_DOUBLE_EQ(finding->verdict.values.at(1).real, 0.5);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 500);
  EXPECT_EQ(finding->verdict.values.at(3).integer, 1000);
  ASSERT_EQ(finding->evidence.size(), 2u);
  EXPECT_EQ(finding->evidence[0].text.values.at(2).text, "torch/__init__.py(1): <module>");
  EXPECT_EQ(finding->evidence[1].text.values.at(2).text, "mine.py(1): <module>");
}

TEST(ImportTimeTest, IsQuietAboutShortImports) {
  EXPECT_EQ(state_of_rule(draw_import_time(76), "import-time"),
            RuleRun::State::kQuiet);  // 95 of 1000
}

// 20 of 40 samples.
TEST(ImportTimeTest, FewSamplesSayNothing) {
  ProgramSketch program;
  program.launch({.us = 40});
  sampled(program, "train.py(1): <module>", 0, 40);
  sampled(program, kFind, 0, 20);
  EXPECT_EQ(state_of_rule(program.trace(), "import-time"), RuleRun::State::kQuiet);
  ProgramSketch without;
  without.launch({.us = 40});
  EXPECT_EQ(state_of_rule(without.trace(), "import-time"), RuleRun::State::kNotChecked);
}

}  // namespace
}  // namespace lanescope::explain
