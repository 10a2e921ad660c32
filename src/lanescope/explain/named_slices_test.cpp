#include "lanescope/explain/named_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Sketch;

// Two threads: add, mul, add on the first, mul_ on the second; one of the first's is a range.
class NamedSlicesTest : public ::testing::Test {
 protected:
  NamedSlicesTest() {
    Sketch sketch;
    sketch.op("aten::add", us(0), us(5), {.tid = 100});
    sketch.op("aten::mul", us(10), us(5), {.tid = 100});
    sketch.annotation("aten::add", us(20), us(5), {.tid = 100});
    sketch.op("aten::mul_", us(0), us(5), {.tid = 101});
    trace_ = sketch.trace();
    facts_ = *gather_facts(trace_);
  }
  // "name at start in us", of what was found.
  std::vector<std::string> texts(const std::vector<SliceId>& slices) const {
    std::vector<std::string> texts;
    for (const SliceId id : slices)
      texts.push_back(std::string(trace_.name(id)) + " " +
                      std::to_string((trace_.start_ns(id) - trace_.start_ns(SliceId{0})) / 1000));
    return texts;
  }
  Trace trace_;
  Facts facts_;
};

TEST_F(NamedSlicesTest, OneNameFindsSlicesOfEachKind) {
  EXPECT_THAT(texts(slices_named(facts_, "aten::add")), ElementsAre("aten::add 0", "aten::add 20"));
  EXPECT_THAT(texts(slices_named(facts_, "aten::ad")), IsEmpty());
  EXPECT_THAT(texts(slices_named(facts_, "")), IsEmpty());
}

TEST_F(NamedSlicesTest, SeveralNamesComeInOrderOfIdNotByName) {
  EXPECT_THAT(texts(slices_starting_with(facts_, "aten::")),
              ElementsAre("aten::add 0", "aten::mul 10", "aten::add 20", "aten::mul_ 0"));
  EXPECT_THAT(texts(slices_starting_with(facts_, "aten::mul")),
              ElementsAre("aten::mul 10", "aten::mul_ 0"));
}

TEST_F(NamedSlicesTest, ATestOfNamesIsAskedOnceForEach) {
  static int asked;
  asked = 0;
  const auto found = slices_named(facts_, [](std::string_view name) {
    ++asked;
    return name.ends_with("_");
  });
  EXPECT_THAT(texts(found), ElementsAre("aten::mul_ 0"));
  EXPECT_EQ(asked, 3);
}

TEST_F(NamedSlicesTest, AnyNameThatPassesTheTestIsEnough) {
  EXPECT_TRUE(any_named(facts_, [](std::string_view name) { return name.ends_with("_"); }));
  EXPECT_FALSE(any_named(facts_, [](std::string_view name) { return name.empty(); }));
}

}  // namespace
}  // namespace lanescope::explain
