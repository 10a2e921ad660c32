#include "lanescope/codec/crc32.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <string_view>
#include <vector>

namespace lanescope {
namespace {

TEST(Crc32, OfTheUsualNineDigitsIsTheUsualNumber) {
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(crc32(0, reinterpret_cast<const std::byte*>(kDigits.data()), kDigits.size()),
            0xcbf43926u);
}

TEST(Crc32, EqualsThatOfZlibForEachLengthAndPlace) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(5000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const auto expect_equal = [&](std::size_t from, std::size_t size, std::uint32_t sum) {
    EXPECT_EQ(crc32(sum, bytes.data() + from, size),
              crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data() + from), size))
        << "from " << from << ", " << size << " bytes, after " << sum;
  };
  for (std::size_t size = 0; size < 300; ++size) {
    expect_equal(size % 17, size, 0);
    expect_equal(size % 17, size, static_cast<std::uint32_t>(random()));
  }
  expect_equal(3, 4096, 1);
  expect_equal(0, bytes.size(), ~std::uint32_t{0});
}

TEST(Crc32, GoesOnFromTheSumOfWhatCameBefore) {
  std::vector<std::byte> bytes(1000, std::byte{0x5a});
  const std::uint32_t whole = crc32(0, bytes.data(), bytes.size());
  EXPECT_EQ(crc32(crc32(0, bytes.data(), 321), bytes.data() + 321, 679), whole);
}

}  // namespace
}  // namespace lanescope
