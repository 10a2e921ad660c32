// A column of rows. Either it holds the rows itself, or they lie in memory of another owner, such as
// a mapped index file. Reading is the same for both.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace lanescope::view {

// Read-only once filled; any thread. Cannot be copied: the span of a copy would point to the rows of the original.
template <typename T>
class ViewColumn {
  static_assert(std::is_trivially_copyable_v<T>, "rows must be bytes that a file can hold");

 public:
  ViewColumn() = default;
  // Does not copy the rows; `owner` keeps them alive.
  ViewColumn(std::span<const T> rows, std::shared_ptr<const void> owner)
      : rows_(rows), owner_(std::move(owner)) {}
  explicit ViewColumn(std::vector<T> rows) : own_(std::move(rows)), rows_(own_) {}
  ViewColumn(ViewColumn&& other) noexcept = default;  // a vector's rows stay where they are
  ViewColumn& operator=(ViewColumn&& other) noexcept = default;
  ViewColumn(const ViewColumn&) = delete;
  ViewColumn& operator=(const ViewColumn&) = delete;
  ~ViewColumn() = default;

  void reserve(std::size_t rows) {
    own_.reserve(rows);
    rows_ = own_;
  }
  void push_back(const T& row) {
    own_.push_back(row);
    rows_ = own_;
  }
  T& last() { return own_.back(); }  // only if this column holds its rows itself

  const T& operator[](std::size_t row) const { return rows_.data()[row]; }
  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  const T* begin() const { return rows_.data(); }
  const T* end() const { return rows_.data() + rows_.size(); }
  std::span<const T> rows() const { return rows_; }

 private:
  std::vector<T> own_;
  std::span<const T> rows_;
  std::shared_ptr<const void> owner_;
};

}  // namespace lanescope::view
