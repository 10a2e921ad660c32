#include "lanescope/codec/record_options.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>

namespace lanescope::spool {
namespace {

TEST(RecordOptionsTest, EachBitHasOneName) {
  std::uint32_t named = 0;
  std::set<std::string> names;
  for (const RecordOption& option : kRecordOptions) {
    EXPECT_TRUE(std::has_single_bit(option.bit)) << option.name;
    EXPECT_EQ(named & option.bit, 0u) << option.name << " shares its bit";
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    named |= option.bit;
  }
  EXPECT_EQ(named, LANESCOPE_RECORD_NEXT_OPTION - 1) << "a bit without a name";
}

}  // namespace
}  // namespace lanescope::spool
