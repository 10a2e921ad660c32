// The wire format of protobuf (https://protobuf.dev/programming-guides/encoding/): fields of a
// message, without a schema. docs/decisions/protobuf.md says why not a library.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lanescope::codec {

// Walks the fields of one message in memory. Never reads outside of it. Cheap to copy.
//
//   for (WireReader field(message); field.next();)
//     if (field.number() == 8) time = field.integer();
class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  // False: no more fields. Then is_damaged() says whether the message ended inside a field, or held
  // something that is no field (a group, a field 0). The fields before that were given.
  bool next() {
    if (rest_.empty()) return false;
    std::uint64_t tag = 0;
    if (!take_varint(tag) || tag >> 3U == 0 || tag >> 3U > kLargestNumber) return damaged();
    number_ = static_cast<std::uint32_t>(tag >> 3U);
    type_ = static_cast<std::uint8_t>(tag & 7U);
    switch (type_) {
      case 0:
        return take_varint(value_) || damaged();
      case 1:
        return take_fixed(8) || damaged();
      case 2:
        return take_bytes() || damaged();
      case 5:
        return take_fixed(4) || damaged();
      default:
        return damaged();
    }
  }
  bool is_damaged() const { return damaged_; }

  std::uint32_t number() const { return number_; }
  bool is_bytes() const { return type_ == 2; }
  bool is_fixed() const { return type_ == 1 || type_ == 5; }
  // Values of another wire type than asked for are 0 or empty.
  std::uint64_t integer() const { return is_bytes() ? 0 : value_; }
  std::int64_t signed_integer() const { return static_cast<std::int64_t>(integer()); }
  double real() const { return type_ == 1 ? std::bit_cast<double>(value_) : 0; }
  std::string_view bytes() const {
    return is_bytes() ? bytes_ : std::string_view();
  }  // or a message

  // For repeated numbers, which may be packed into one field: calls take(bits) for each. `width`: 0
  // for varints, 8 for fixed64 and double. False: the packed values are cut.
  template <typename Take>
  bool each_number(std::size_t width, Take take) const {
    if (!is_bytes()) {
      take(value_);
      return true;
    }
    WireReader values(bytes_);
    while (!values.rest_.empty()) {
      if (width == 0 ? !values.take_varint(values.value_) : !values.take_fixed(width)) return false;
      take(values.value_);
    }
    return true;
  }

 private:
  static constexpr std::uint64_t kLargestNumber = (1U << 29U) - 1;

  bool damaged() {
    damaged_ = true;
    rest_ = {};
    return false;
  }
  bool take_varint(std::uint64_t& value) {
    if (!rest_.empty() && static_cast<unsigned char>(rest_[0]) < 0x80U) {  // nearly always
      value = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      return true;
    }
    value = 0;
    for (std::size_t i = 0; i < rest_.size() && i < 10; ++i) {
      const auto byte = static_cast<unsigned char>(rest_[i]);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << (7 * i);
      if (byte >= 0x80U) continue;
      rest_.remove_prefix(i + 1);
      return true;
    }
    return false;
  }
  bool take_fixed(std::size_t width) {
    if (rest_.size() < width) return false;
    value_ = 0;
    for (std::size_t i = 0; i < width; ++i)
      value_ |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    rest_.remove_prefix(width);
    return true;
  }
  bool take_bytes() {
    std::uint64_t size = 0;
    if (!take_varint(size) || size > rest_.size()) return false;
    bytes_ = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(static_cast<std::size_t>(size));
    return true;
  }

  std::string_view rest_, bytes_;
  std::uint64_t value_ = 0;
  std::uint32_t number_ = 0;
  std::uint8_t type_ = 0;
  bool damaged_ = false;
};

// Appends fields to a text.
class WireWriter {
 public:
  explicit WireWriter(std::string& out) : out_(out) {}
  void integer(std::uint32_t number, std::uint64_t value) {
    varint(std::uint64_t{number} << 3U);
    varint(value);
  }
  void signed_integer(std::uint32_t number, std::int64_t value) {
    integer(number, static_cast<std::uint64_t>(value));
  }
  void fixed64(std::uint32_t number, std::uint64_t value) {
    varint(std::uint64_t{number} << 3U | 1U);
    for (int i = 0; i < 8; ++i) out_.push_back(static_cast<char>(value >> (8 * i) & 0xFFU));
  }
  void real(std::uint32_t number, double value) {
    fixed64(number, std::bit_cast<std::uint64_t>(value));
  }
  // A text, bytes, or a message that is written already.
  void bytes(std::uint32_t number, std::string_view text) {
    varint(std::uint64_t{number} << 3U | 2U);
    varint(text.size());
    out_ += text;
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) out_.push_back(static_cast<char>(value | 0x80U));
    out_.push_back(static_cast<char>(value));
  }

 private:
  std::string& out_;
};

}  // namespace lanescope::codec
