// Memory of an interpreter, for tests of the code that reads it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>

#include "lanescope/sample/process_memory.h"

namespace lanescope::sample {

// A test writes the bytes of this memory one by one. Any other byte cannot be read.
class DrawnMemory : public ProcessMemory {
 public:
  using ProcessMemory::read;
  void read(std::span<MemoryPiece> pieces) override {
    ++calls;
    for (MemoryPiece& piece : pieces) {
      piece.ok = true;
      for (std::size_t i = 0; i < piece.size && piece.ok; ++i) {
        const auto byte = bytes_.find(piece.address + i);
        piece.ok = byte != bytes_.end();
        if (piece.ok) static_cast<unsigned char*>(piece.to)[i] = byte->second;
      }
    }
  }
  void fill(std::uint64_t at, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes_[at + i] = 0;
  }
  template <typename Word>
  void put(std::uint64_t at, Word word) {
    unsigned char bytes[sizeof word];
    std::memcpy(bytes, &word, sizeof word);
    for (std::size_t i = 0; i < sizeof word; ++i) bytes_[at + i] = bytes[i];
  }
  std::map<std::uint64_t, unsigned char>& bytes() { return bytes_; }
  int calls = 0;

 private:
  std::map<std::uint64_t, unsigned char> bytes_;
};

}  // namespace lanescope::sample
