#include "lanescope/analysis/indexed_work.h"

#include <gtest/gtest.h>

namespace lanescope::analysis {
namespace {

double bytes_of(const OperatorCall& call) {
  const auto work = compute_operator_work(call);
  EXPECT_TRUE(work) << call.name << " " << call.dims;
  if (!work) return -1;
  EXPECT_EQ(work->kind, OperatorKind::kIndexing);
  EXPECT_EQ(work->flops, 0);
  return work->bytes;
}

// 5 rows of 4 floats out of 100: read and written 80 bytes each, and 5 indices of 8. Of a table with
// 2 rows at most 32 bytes come from memory.
TEST(IndexedWorkTest, CountsTheRowsOfAGather) {
  constexpr char kTypes[] = R"(["float", "Scalar", "long int"])";
  EXPECT_EQ(bytes_of({"aten::index_select", "[[100, 4], [], [5]]", kTypes, "", R"(["", "0", ""])"}),
            80 + 40 + 80);
  EXPECT_EQ(bytes_of({"aten::index_select", "[[2, 4], [], [5]]", kTypes, "", R"(["", "0", ""])"}),
            32 + 40 + 80);
  // Along the last dimension: 100 numbers for each of 3 indices.
  EXPECT_EQ(
      bytes_of({"aten::index_select", "[[100, 4], [], [3]]", kTypes, "", R"(["", "-1", ""])"}),
      1200 + 24 + 1200);
  EXPECT_EQ(bytes_of({"aten::gather", "[[100, 4], [], [5, 2]]", kTypes, "", R"(["", "0", ""])"}),
            40 + 80 + 40);
}

// 1000 rows of 4 floats are added into 8: 16,000 bytes and 1000 indices of 8.
TEST(IndexedWorkTest, CountsWhatAScatterAdds) {
  EXPECT_EQ(bytes_of({"aten::index_add_", "[[8, 4], [], [1000], [1000, 4], []]",
                      R"(["float", "Scalar", "long int", "float", "Scalar"])", "",
                      R"(["", "0", "", "", "1"])"}),
            8000 + 16000);
}

// [1, 2, 3, 3] in bf16, twice as large: 18 numbers read, 72 written; or a size of 6 by 9: 108.
TEST(IndexedWorkTest, CountsBothImagesOfAResampling) {
  constexpr char kTypes[] = R"(["c10::BFloat16", "", "Scalar", "ScalarList"])";
  EXPECT_EQ(bytes_of({"aten::upsample_bilinear2d", "[[1, 2, 3, 3], [], [], []]", kTypes, "",
                      R"(["", "", "False", "[2., 2.]"])"}),
            2 * (18 + 72));
  EXPECT_EQ(bytes_of({"aten::upsample_bilinear2d", "[[1, 2, 3, 3], [], [], []]", kTypes, "",
                      R"(["", "[6, 9]", "False", ""])"}),
            2 * (18 + 108));
  EXPECT_EQ(bytes_of({"aten::upsample_nearest2d", "[[1, 2, 3, 3], [], []]", kTypes, "",
                      R"(["", "", "[2., 2.]"])"}),
            2 * (18 + 72));
}

// Files may say anything.
TEST(IndexedWorkTest, KnowsNothingOfInputsThatDoNotFit) {
  constexpr char kTypes[] = R"(["float", "Scalar", "long int"])";
  EXPECT_FALSE(compute_operator_work(
      {"aten::index_select", "[[100, 4], [], [5]]", kTypes, "", R"(["", "2", ""])"}));
  EXPECT_FALSE(compute_operator_work(
      {"aten::index_select", "[[], [], [5]]", kTypes, "", R"(["", "0", ""])"}));
  EXPECT_FALSE(
      compute_operator_work({"aten::index_select", "[[100, 4], [], [5]]", kTypes, "", ""}));
  EXPECT_FALSE(compute_operator_work(
      {"aten::index_add_", "[[8, 4], [], []]", R"(["float", "Scalar", ""])", "", ""}));
  for (const char* scales : {"[2.]", "[-1., 2.]", "[nan, 2.]", "[1e300, 2.]", "2.", ""})
    EXPECT_FALSE(
        compute_operator_work({"aten::upsample_bilinear2d", "[[1, 2, 3, 3]]", R"(["float"])", "",
                               std::string(R"(["", "", "", ")") + scales + R"("])"}))
        << scales;
}

}  // namespace
}  // namespace lanescope::analysis
