#include "lanescope/base/utf8.h"

#include <gtest/gtest.h>

namespace lanescope {
namespace {

std::string utf8(std::uint32_t code_point) {
  std::string out;
  append_utf8(out, code_point);
  return out;
}

// The first and the last character of each length.
TEST(Utf8Test, ACharacterTakesOneToFourBytes) {
  EXPECT_EQ(utf8(0), std::string(1, '\0'));
  EXPECT_EQ(utf8(0x7f), "\x7f");
  EXPECT_EQ(utf8(0x80), "\xc2\x80");
  EXPECT_EQ(utf8(0x7ff), "\xdf\xbf");
  EXPECT_EQ(utf8(0x800), "\xe0\xa0\x80");
  EXPECT_EQ(utf8(0xffff), "\xef\xbf\xbf");
  EXPECT_EQ(utf8(0x10000), "\xf0\x90\x80\x80");
  EXPECT_EQ(utf8(0x10ffff), "\xf4\x8f\xbf\xbf");
}

TEST(Utf8Test, WhatIsNoCharacterIsReplaced) {
  for (const std::uint32_t none : {0xd800u, 0xdfffu, 0x110000u, 0xffffffffu})
    EXPECT_EQ(utf8(none), "\xef\xbf\xbd") << none;
}

}  // namespace
}  // namespace lanescope
