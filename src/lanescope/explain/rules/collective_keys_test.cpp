#include <gtest/gtest.h>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_collectives_test.h"

namespace lanescope::explain {
namespace {

using testing::Sketch;

Trace with_keys(bool named, bool repeated) {
  Sketch sketch;
  for (int i = 0; i < 10; ++i) {
    sketch.runtime("cudaLaunchKernel", i * 100'000, 4'000, {.correlation = i + 1});
    sketch.kernel(kNccl, i * 100'000 + 6'000, 10'000,
                  {.correlation = i + 1,
                   .collective = named ? "allreduce" : "",
                   .elements = 5,
                   .collective_seq = repeated ? i / 2 : i});
  }
  return sketch.trace();
}

TEST(CollectiveKeysTest, SpeaksOfNamelessKernelsAndRepeatedNumbers) {
  EXPECT_EQ(find_by_rule(with_keys(false, false), "collective-keys")->verdict.values[0].integer,
            10);
  EXPECT_EQ(find_by_rule(with_keys(true, true), "collective-keys")->verdict.values[0].integer, 5);
}

TEST(CollectiveKeysTest, IsQuietWhenEachCallCanBeTold) {
  EXPECT_FALSE(find_by_rule(with_keys(true, false), "collective-keys"));
}

}  // namespace
}  // namespace lanescope::explain
