#include "lanescope/record_cupti/other_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace lanescope::record_cupti {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

cpu_set_t set_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  return set;
}

std::vector<int> list_of(const cpu_set_t& set) {
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  return cores;
}

TEST(OtherCoresTest, ListsAreRead) {
  EXPECT_THAT(cores_in("2\n"), ElementsAre(2));
  EXPECT_THAT(cores_in("0-2,8,10-11\n"), ElementsAre(0, 1, 2, 8, 10, 11));
  EXPECT_THAT(cores_in("3-"), IsEmpty());
  EXPECT_THAT(cores_in("x"), IsEmpty());
  EXPECT_EQ(cores_in("0-999999999").size(), static_cast<std::size_t>(CPU_SETSIZE));
}

TEST(OtherCoresTest, TheCoreOfAProcessIsFound) {
  std::string fields = "7 (a) b) R";
  for (int field = 4; field < 39; ++field) fields += " " + std::to_string(field);
  EXPECT_EQ(core_in_stat(fields + " 13 0 0"), 13);
  EXPECT_EQ(core_in_stat(fields), -1);
  EXPECT_EQ(core_in_stat("7 (a"), -1);
  std::ifstream file("/proc/self/stat");
  const std::string own{std::istreambuf_iterator<char>(file), {}};
  EXPECT_GE(core_in_stat(own), 0);
}

TEST(OtherCoresTest, SiblingsAreLeftOut) {
  const cpu_set_t all = set_of({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(list_of(other_cores(all, 2, {2, 6})), ElementsAre(0, 1, 3, 4, 5, 7));
  // None is known: the neighbour.
  EXPECT_THAT(list_of(other_cores(all, 2, {2})), ElementsAre(0, 1, 4, 5, 6, 7));
  EXPECT_THAT(list_of(other_cores(all, 5, {})), ElementsAre(0, 1, 2, 3, 6, 7));
  // Nothing else is left, or nothing is known.
  EXPECT_THAT(list_of(other_cores(set_of({0, 1}), 1, {1})), ElementsAre(0, 1));
  EXPECT_THAT(list_of(other_cores(set_of({0, 2}), -1, {})), ElementsAre(0, 2));
}

}  // namespace
}  // namespace lanescope::record_cupti
