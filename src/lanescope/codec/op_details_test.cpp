#include "lanescope/codec/op_details.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace lanescope::codec {
namespace {

using Dims = std::array<std::int64_t, 2>;

class OpDetailsTest : public testing::Test {
 protected:
  OpDetails decoded() {
    OpDetails details;
    EXPECT_TRUE(decode_op_details(writer_.bytes(), &details));
    return details;
  }
  char buffer_[kMaxOpDetailsBytes];
  OpDetailsWriter writer_{buffer_, sizeof buffer_};
};

// The texts are what torch.profiler 2.13 wrote for torch.add(a, b, alpha=2) with two 4 x 4 tensors.
TEST_F(OpDetailsTest, TensorsAndAScalarReadAsTorchProfilerWritesThem) {
  writer_.tensor("float", Dims{4, 4}, Dims{4, 1});
  writer_.tensor("float", Dims{4, 4}, Dims{4, 1});
  writer_.integer(2);
  const OpDetails details = decoded();
  EXPECT_EQ(details.input_dims, "[[4, 4], [4, 4], []]");
  EXPECT_EQ(details.input_types, R"(["float", "float", "Scalar"])");
  EXPECT_EQ(details.input_strides, "[[4, 1], [4, 1], []]");
  EXPECT_EQ(details.concrete_inputs, R"(["", "", "2"])");
}

TEST_F(OpDetailsTest, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  writer_.tensor("flo\xff", Dims{4, 4}, Dims{4, 1});
  writer_.keywords();
  writer_.key("k\x80");
  writer_.string("\xc3");
  const OpDetails details = decoded();
  EXPECT_EQ(details.input_types, "[\"flo\xef\xbf\xbd\"]");
  ASSERT_EQ(details.keywords.size(), 1u);
  EXPECT_EQ(details.keywords[0].key, "k\xef\xbf\xbd");
  EXPECT_EQ(details.keywords[0].text, "\xef\xbf\xbd");
}

TEST_F(OpDetailsTest, TensorListsNestAndLongOnesAreEmpty) {
  writer_.tensor_list(2);
  writer_.list_tensor(Dims{4, 4}, Dims{4, 1});
  writer_.list_tensor({}, {});
  writer_.tensor_list(31);
  const OpDetails details = decoded();
  EXPECT_EQ(details.input_dims, "[[[4, 4], []], []]");
  EXPECT_EQ(details.input_strides, "[[[4, 1], []], []]");
  EXPECT_EQ(details.input_types, R"(["TensorList", "TensorList"])");
  EXPECT_EQ(details.concrete_inputs, R"(["", ""])");
}

TEST_F(OpDetailsTest, ScalarListsAndNumbersHaveTorchsSpelling) {
  writer_.scalar_list(3);
  writer_.boolean(true);
  writer_.integer(-1);
  writer_.real(1.5);
  writer_.scalar_list(0);
  writer_.real(3);
  writer_.real(-0.0);
  writer_.real(0.1);
  writer_.real(1e300);
  writer_.real(std::numeric_limits<double>::infinity());
  writer_.real(std::nan(""));
  writer_.integer(std::numeric_limits<std::int64_t>::min());
  writer_.string("(1,2)");
  writer_.other();
  EXPECT_EQ(
      decoded().concrete_inputs,
      R"j(["[True, -1, 1.5]", "[]", "3.", "-0.", "0.10000000000000001", "1.0000000000000001e+300", )j"
      R"j("inf", "nan", "-9223372036854775808", "(1,2)", ""])j");
}

TEST_F(OpDetailsTest, KeywordsKeepTheirTypesAndNeedNoInputs) {
  writer_.keywords();
  writer_.key("grid");
  writer_.integer(128);
  writer_.key("scale");
  writer_.real(0.5);
  writer_.key("is_async");
  writer_.boolean(true);
  writer_.key("kernel_file");
  writer_.string("a\"b");
  writer_.key("names");
  writer_.text_list(2);
  writer_.text("x");
  writer_.text("y\n");
  writer_.key("id");
  writer_.unsigned_integer(std::numeric_limits<std::uint64_t>::max());
  const OpDetails details = decoded();
  EXPECT_EQ(details.input_dims, "");
  ASSERT_EQ(details.keywords.size(), 6u);
  EXPECT_EQ(details.keywords[0].integer, 128);
  EXPECT_EQ(details.keywords[1].real, 0.5);
  EXPECT_EQ(details.keywords[2].kind, DetailKeyword::Kind::kBoolean);
  EXPECT_EQ(details.keywords[3].text, "a\"b");
  EXPECT_EQ(details.keywords[4].text, R"(["x", "y\u000a"])");
  EXPECT_EQ(details.keywords[5].kind, DetailKeyword::Kind::kUnsigned);
  EXPECT_EQ(static_cast<std::uint64_t>(details.keywords[5].integer),
            std::numeric_limits<std::uint64_t>::max());
}

TEST_F(OpDetailsTest, UndoForgetsAnInputThatCouldNotBeRead) {
  writer_.integer(1);
  char* const mark = writer_.mark();
  writer_.tensor_list(4);
  writer_.undo(mark);
  writer_.other();
  EXPECT_EQ(decoded().concrete_inputs, R"(["1", ""])");
}

TEST_F(OpDetailsTest, AStackComesBeforeTheInputs) {
  writer_.stack(300);
  writer_.integer(1);
  const OpDetails details = decoded();
  EXPECT_EQ(details.stack, 300u);
  EXPECT_EQ(details.concrete_inputs, R"(["1"])");
  OpDetails cut;
  EXPECT_FALSE(decode_op_details(writer_.bytes().substr(0, 2), &cut));  // 300 takes two bytes
  EXPECT_EQ(cut.stack, 0u);
}

TEST_F(OpDetailsTest, AStackNodeIsItsTwoNumbersAndNothingElse) {
  writer_.stack_node(70'000, std::numeric_limits<std::uint32_t>::max());
  const std::string_view bytes = writer_.bytes();
  ASSERT_LE(bytes.size(), kMaxStackNodeBytes);
  StackNode node;
  ASSERT_TRUE(decode_stack_node(bytes, &node));
  EXPECT_EQ(node.frame, 70'000u);
  EXPECT_EQ(node.caller, std::numeric_limits<std::uint32_t>::max());
  StackNode untouched{1, 2};
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_stack_node(bytes.substr(0, size), &untouched)) << size;
  EXPECT_FALSE(decode_stack_node(std::string(bytes) + '\0', &untouched));
  EXPECT_FALSE(decode_stack_node("\x0d\xff\xff\xff\xff\x7f\x01", &untouched));  // beyond 32 bits
  EXPECT_EQ(untouched.frame, 1u);
  OpDetails details;
  EXPECT_FALSE(decode_op_details(bytes, &details));  // no operator's inputs
}

TEST(OpDetailsOverflowTest, AnInputThatDoesNotFitCanBeReplaced) {
  char buffer[8];
  OpDetailsWriter writer(buffer, sizeof buffer);
  writer.integer(1);
  char* const mark = writer.mark();
  writer.tensor("c10::BFloat16", {}, {});
  EXPECT_TRUE(writer.overflowed());
  writer.undo(mark);
  writer.other();
  OpDetails details;
  EXPECT_TRUE(decode_op_details(writer.bytes(), &details));
  EXPECT_EQ(details.concrete_inputs, R"(["1", ""])");
}

TEST(OpDetailsOverflowTest, TooManyBytesLeaveNone) {
  char buffer[8];
  OpDetailsWriter writer(buffer, sizeof buffer);
  writer.integer(1);
  writer.tensor("c10::BFloat16", {}, {});
  writer.integer(1);
  EXPECT_TRUE(writer.overflowed());
  EXPECT_EQ(writer.bytes(), "");
}

TEST_F(OpDetailsTest, EveryCutIsDamageOrAShorterListAndNeverRunsAway) {
  writer_.tensor("float", Dims{4, 4}, Dims{4, 1});
  writer_.tensor_list(2);
  writer_.list_tensor(Dims{4, 4}, Dims{4, 1});
  writer_.list_tensor(Dims{4, 4}, Dims{4, 1});
  writer_.scalar_list(1);
  writer_.real(1);
  writer_.keywords();
  writer_.key("k");
  writer_.text_list(1);
  writer_.text("v");
  const std::string_view bytes = writer_.bytes();
  int whole = 0;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    OpDetails details;
    whole += decode_op_details(bytes.substr(0, size), &details);
  }
  EXPECT_EQ(whole, 6);  // cuts after nothing, the tensor, the list, the scalar list, the keyword
                        // mark, the keyword
  OpDetails details;
  EXPECT_FALSE(decode_op_details("\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                 &details));  // a type of 2^64 - 1 bytes
  EXPECT_FALSE(decode_op_details("\x7f", &details));
}

}  // namespace
}  // namespace lanescope::codec
