// Keeps each distinct text once. Names, paths and argument texts of a trace repeat, so columns keep
// only a 32-bit id.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "lanescope/base/ids.h"

namespace lanescope {

// Append-only. Ids count up from 0 in order of first appearance, so equal input gives equal ids.
// Views stay valid as long as the pool lives, also after a move. intern: one thread; view and size:
// any number of threads once interning has ended. Cost: one hash and usually one comparison a call;
// 16 bytes an entry, 4-8 in the table, and the text itself.
class StringPool {
 public:
  StringPool();
  StringPool(StringPool&&) = default;
  StringPool& operator=(StringPool&&) = default;

  StringId intern(std::string_view text);
  // kNone<StringId> when the text was never interned.
  StringId find(std::string_view text) const;
  std::string_view view(StringId id) const {
    const Entry& entry = entries_[raw(id)];
    return {entry.text, entry.size};
  }
  std::size_t size() const { return entries_.size(); }
  std::size_t memory_bytes() const;

  // What a reader of the texts needs, without pointers.
  struct Parts {
    std::vector<char> bytes;            // all texts, one after the other, in order of their ids
    std::vector<std::uint64_t> starts;  // of each text in `bytes`, and the end of the last one
    // Open addressing; 0: free, else id + 1. Their number is a power of two, and at most half are
    // in use. A text is at first_slot(), or in a later slot with no free one between.
    std::vector<std::uint32_t> slots;
  };
  // Copies the texts once. The pool is empty afterwards, and its views end.
  Parts take() &&;

 private:
  struct Entry {
    const char* text;
    std::uint32_t size;
    std::uint32_t hash;
  };
  const char* store(std::string_view text);
  void grow();
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const;

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> table_;  // open addressing; entry index + 1, 0 is empty
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* block_at_ = nullptr;
  std::size_t block_left_ = 0;
  std::size_t block_bytes_ = 0;
};

// 64-bit mix of the bytes; not for security. Same result on every machine of one endianness.
std::uint64_t hash_bytes(std::string_view text);
// Where a text belongs in StringPool::Parts::slots, modulo their number.
inline std::uint32_t first_slot(std::string_view text) {
  return static_cast<std::uint32_t>(hash_bytes(text));
}

}  // namespace lanescope
