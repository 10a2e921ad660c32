// Bytes that workers send each other: numbers, texts and rows, written and read in the same order.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lanescope::ranks {

class MessageWriter {
 public:
  // Rows are copied as they lie in memory: all workers run the same program on the same kind of machine.
  template <class T>
  MessageWriter& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  MessageWriter& put_text(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  template <class T>
  MessageWriter& put_rows(const std::vector<T>& rows) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(static_cast<std::uint64_t>(rows.size()));
    if (!rows.empty())
      bytes_.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(T));
    return *this;
  }
  std::string finish() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// What MessageWriter wrote. A message that ends early is a bug, and ends the program.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : left_(bytes) {}
  bool at_end() const { return left_.empty(); }
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string_view get_text() {
    const auto size = get<std::uint64_t>();
    return {take(size), size};
  }
  template <class T>
  std::vector<T> get_rows() {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto count = get<std::uint64_t>();
    check_rows(count, sizeof(T));
    std::vector<T> rows(count);
    if (count > 0) std::memcpy(rows.data(), take(count * sizeof(T)), count * sizeof(T));
    return rows;
  }

 private:
  const char* take(std::uint64_t bytes);
  void check_rows(std::uint64_t count, std::size_t bytes) const;

  std::string_view left_;
};

}  // namespace lanescope::ranks
