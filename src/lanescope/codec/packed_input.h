// The packed bytes of a source, with a view of the next ones.
#pragma once
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/codec/byte_source.h"

namespace lanescope::codec {

// One thread. The view is valid until the next call.
class PackedInput {
 public:
  explicit PackedInput(std::unique_ptr<ByteSource> source);

  // The next bytes, at least `want` unless the source ends earlier. Memory: `want` and a quarter of
  // a megabyte.
  Result<std::string_view> peek(std::size_t want);
  void consume(std::size_t count) { begin_ += count; }
  // Copies the next `count` bytes, which a view has shown, to `into`.
  void take(std::size_t count, std::vector<char>& into);
  // Puts back bytes that were taken: they come again, before the next ones.
  void give_back(std::string_view bytes);
  const ByteSource& source() const { return *source_; }
  ByteSource& source() { return *source_; }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  bool source_ended_ = false;
};

}  // namespace lanescope::codec
