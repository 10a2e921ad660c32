// An array whose rows are not set when it is made: std::vector would set them all on one thread, and so touch all of their
// pages.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace lanescope {

// Its size is fixed. Each row must be set before it is read. Moves in O(1).
template <typename Row>
class UnsetArray {
 public:
  static_assert(std::is_trivially_default_constructible_v<Row> &&
                std::is_trivially_copyable_v<Row>);

  UnsetArray() = default;
  explicit UnsetArray(std::size_t size)
      : rows_(std::make_unique_for_overwrite<Row[]>(size)), size_(size) {}

  std::size_t size() const { return size_; }
  Row* data() { return rows_.get(); }
  const Row* data() const { return rows_.get(); }
  Row& operator[](std::size_t i) { return rows_[i]; }
  const Row& operator[](std::size_t i) const { return rows_[i]; }
  std::span<Row> rows() { return {rows_.get(), size_}; }
  std::span<const Row> rows() const { return {rows_.get(), size_}; }

 private:
  std::unique_ptr<Row[]> rows_;
  std::size_t size_ = 0;
};

}  // namespace lanescope
