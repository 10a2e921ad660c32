#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rules/drawn_operators_test.h"

namespace lanescope::explain {
namespace {

testing::Fields joined_with(std::string_view added, std::string_view old) {
  return inputs("[[" + std::string(added) + ", " + std::string(old) + "], []]",
                R"(["TensorList", "Scalar"])", "", R"(["", "0"])");
}

// A queue of `before`, cut and joined anew in 200 us, then a product of 100 us.
std::optional<Finding> find_in_queue(std::string_view before, std::string_view added,
                                     std::string_view old, const char* cut = "aten::slice",
                                     const char* added_by = "aten::normalize") {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op(cut, inputs("[" + std::string(before) + ", [], [], [], []]",
                           R"(["float", "Scalar", "Scalar", "Scalar", "Scalar"])", "",
                           R"(["", "0", "0", "-64", "1"])"));
    p.end();
    p.begin_op(added_by).end();
    p.begin_op("aten::cat", joined_with(added, old)).kernel("cat", 200).end();
    p.begin_op("aten::mm").kernel("gemm", 100).end();
  });
  return find_by_rule(program.trace(), "rebuilt-tensor");
}

TEST(RebuiltTensorTest, SeesAQueueThatIsJoinedAnew) {
  const auto finding = find_in_queue("[65536, 32]", "[64, 32]", "[65472, 32]");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(200));
  EXPECT_EQ(finding->brief.values[1].integer, 65'536 * 32);
  EXPECT_EQ(finding->brief.values[2].integer, 64 * 32);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("over the oldest"));
}

TEST(RebuiltTensorTest, IsQuietAboutOtherJoins) {
  // A cache that grows, halves that are joined, and parts that no slice has cut.
  EXPECT_FALSE(find_in_queue("[65472, 32]", "[64, 32]", "[65472, 32]"));
  EXPECT_FALSE(find_in_queue("[65536, 32]", "[32768, 32]", "[32768, 32]"));
  EXPECT_FALSE(find_in_queue("[65536, 32]", "[64, 32]", "[65472, 32]", "aten::relu"));
  EXPECT_FALSE(find_in_queue("[65536, 32]", "[64, 32]", "[65472, 32]", "aten::slice",
                             "aten::zeros"));                           // a shift
  EXPECT_FALSE(find_in_queue("[4096, 32]", "[64, 32]", "[4032, 32]"));  // small
}

// A clone of 2 M elements, into which `written` is copied.
std::optional<Finding> find_in_clone(std::string_view written, bool is_cut = true) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op("aten::clone", inputs("[[65536, 32], []]", R"(["float", ""])", "", ""));
    p.kernel("copy", 200).end();
    if (is_cut)
      p.begin_op("aten::select",
                 inputs("[[65536, 32], [], []]", R"(["float", "Scalar", "Scalar"])", "", ""))
          .end();
    p.begin_op("aten::copy_", inputs("[" + std::string(written) + "]", R"(["float"])", "", ""));
    p.kernel("copy_row", 5).end();
    p.begin_op("aten::mm").kernel("gemm", 100).end();
  });
  return find_by_rule(program.trace(), "rebuilt-tensor");
}

TEST(RebuiltTensorTest, SeesAClonePartOfWhichIsWritten) {
  const auto finding = find_in_clone("[32]");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(200));
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("tensor itself"));
  EXPECT_FALSE(find_in_clone("[65536, 32]"));
  EXPECT_FALSE(find_in_clone("[32]", false));  // into another tensor
}

// Four rounds on two caches of 2 M elements: a write into each, other work, x[rows] of each in 100 us.
std::optional<Finding> find_in_caches(std::string_view written, bool is_of_cache = true) {
  ProgramSketch program;
  const std::string whole = "[16, 1024, 128]";
  program.steps(6, [&](ProgramSketch& p) {
    for (int round = 0; round < 4; ++round) {
      for (int cache = 0; cache < 2; ++cache) {
        p.begin_op("aten::select",
                   inputs("[" + (is_of_cache ? whole : "[16, 1024, 64]") + ", [], []]",
                          R"(["float", "Scalar", "Scalar"])", "", ""));
        p.end();
        p.begin_op("aten::copy_", inputs("[" + std::string(written) + "]", R"(["float"])", "", ""));
        p.kernel("copy", 5).end();
        p.begin_op("aten::mm").kernel("gemm", 20).end();
      }
      for (int cache = 0; cache < 2; ++cache)
        p.begin_op("aten::index", inputs("[" + whole + ", []]", R"(["float", ""])", "", ""))
            .kernel("index", 100)
            .end();
    }
  });
  return find_by_rule(program.trace(), "rebuilt-tensor");
}

// The first round has none before it: three rounds of two calls.
TEST(RebuiltTensorTest, SeesCachesThatAreReorderedAfterSmallWrites) {
  const auto finding = find_in_caches("[16, 128]");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(600));
  EXPECT_EQ(finding->brief.values[1].integer, 16 * 1024 * 128);
  EXPECT_EQ(finding->brief.values[2].integer, 16 * 128);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("only the new part"));
  EXPECT_FALSE(find_in_caches("[16, 512, 128]"));    // half of it
  EXPECT_FALSE(find_in_caches("[16, 128]", false));  // into another tensor
}

// A pool of 2 M elements of which `op` changes [64, 32], in 200 us, then a product of 100 us.
std::optional<Finding> find_in_pool(std::string_view op, const std::string& dims) {
  ProgramSketch program;
  program.steps(6, [&](ProgramSketch& p) {
    p.begin_op(op, inputs(dims, R"(["float", "Scalar", "long int", "float"])", "",
                          R"(["", "0", "", ""])"))
        .kernel("copy", 200)
        .end();
    p.begin_op("aten::mm").kernel("gemm", 100).end();
  });
  return find_by_rule(program.trace(), "rebuilt-tensor");
}

TEST(RebuiltTensorTest, SeesOperatorsThatReturnAChangedCopy) {
  const std::string kFewRows = "[[65536, 32], [], [64], [64, 32]]";
  const auto finding = find_in_pool("aten::index_copy", kFewRows);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, us(200));
  EXPECT_EQ(finding->brief.values[1].integer, 65'536 * 32);
  EXPECT_EQ(finding->brief.values[2].integer, 64 * 32);
  EXPECT_THAT(finding->action.pattern, ::testing::HasSubstr("in place"));
  EXPECT_FALSE(find_in_pool("aten::index_copy_", kFewRows));  // in place
  EXPECT_FALSE(find_in_pool("aten::index_copy", "[[65536, 32], [], [16384], [16384, 32]]"));
  EXPECT_FALSE(find_in_pool("aten::index_copy", "[[4096, 32], [], [64], [64, 32]]"));  // small
}

}  // namespace
}  // namespace lanescope::explain
