// One column of a table: a read-only view of its rows, and the owner of the memory that they lie
// in. Why it has this shape: docs/decisions/columns.md.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace lanescope {

// A column while it is filled. Tables are templates over their kind of list: this one, or Column.
// It has one parameter because clang 16 asks for that there.
template <typename T>
using GrowingColumn = std::vector<T>;

// The rows lie in a vector that the column has taken over, or in memory of another owner, such as
// a mapped file. They never change: any number of threads read them without locks. A row costs one
// load, as in a vector. Copies share the rows; copying and moving are O(1).
template <typename T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>, "rows must be bytes that a file can hold");

 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;

  Column() = default;
  explicit Column(std::vector<T>&& rows) : memory_bytes_(rows.capacity() * sizeof(T)) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(rows));
    rows_ = owner->data();
    size_ = owner->size();
    owner_ = std::move(owner);
  }
  // `rows` stay where they are; `owner` keeps them there. They must be aligned for T.
  Column(std::span<const T> rows, std::shared_ptr<const void> owner)
      : rows_(rows.data()),
        size_(rows.size()),
        memory_bytes_(rows.size_bytes()),
        owner_(std::move(owner)) {}

  Column(const Column&) = default;
  Column& operator=(const Column&) = default;
  Column(Column&& other) noexcept { swap(other); }
  Column& operator=(Column&& other) noexcept {
    Column taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Column() = default;

  const T& operator[](std::size_t row) const { return rows_[row]; }
  const T& front() const { return rows_[0]; }
  const T& back() const { return rows_[size_ - 1]; }
  const T* data() const { return rows_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return rows_; }
  const T* end() const { return rows_ + size_; }

  // Equal rows, wherever they lie.
  friend bool operator==(const Column& a, const Column& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator==(const Column& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  // What the rows take: the capacity of a vector; of rows in other memory, their own bytes.
  std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  void swap(Column& other) noexcept {
    std::swap(rows_, other.rows_);
    std::swap(size_, other.size_);
    std::swap(memory_bytes_, other.memory_bytes_);
    owner_.swap(other.owner_);
  }

  const T* rows_ = nullptr;
  std::size_t size_ = 0;
  std::size_t memory_bytes_ = 0;
  std::shared_ptr<const void> owner_;
};

}  // namespace lanescope
