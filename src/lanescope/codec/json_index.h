// Where the tokens of a piece of JSON start: simdjson's first stage, which also checks UTF-8 and
// that strings end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lanescope::codec {

// Bytes that must be readable after a text given to JsonIndex (their values do not matter).
inline constexpr std::size_t kJsonPadding = 64;

// Reused from piece to piece; one thread. Memory: 4 bytes per byte of the largest piece.
class JsonIndex {
 public:
  JsonIndex();
  JsonIndex(const JsonIndex&) = delete;
  JsonIndex& operator=(const JsonIndex&) = delete;
  ~JsonIndex();

  // False: the text is not UTF-8, holds a raw control character in a string, or a string does not
  // end. At most 4 GB.
  bool build(const char* text, std::size_t size);
  // Offsets of {}[]:, and of the first byte of each string and scalar, ascending; the last
  // entry is `size`.
  std::span<const std::uint32_t> tokens() const { return tokens_; }

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  std::span<const std::uint32_t> tokens_;
};

}  // namespace lanescope::codec
