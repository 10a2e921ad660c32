// A sliding view of the unpacked text: the unread part in memory, and its offset in the whole text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/codec/byte_source.h"

namespace lanescope::format {

// A part of the text that another thread reads while the window moves on. Its buffer holds all the
// text that the window had, and codec::kJsonPadding bytes more.
struct TextPiece {
  std::vector<char> buffer;
  std::size_t begin = 0, end = 0;  // what the window had
  std::size_t size = 0;            // of the part, from `begin`
  std::uint64_t offset = 0;        // of `begin` in the whole text

  std::string_view text() const { return {buffer.data() + begin, size}; }
};

// One thread. Views into text() are valid until the next grow(), detach() or restore(). After
// text(), codec::kJsonPadding bytes are readable.
class TextWindow {
 public:
  // Grows beyond `window_bytes` only for longer values, and never beyond `max_bytes`
  // plus one window.
  TextWindow(codec::ByteSource& source, std::size_t window_bytes, std::size_t max_bytes);

  std::string_view text() const { return {buffer_.data() + begin_, end_ - begin_}; }
  std::uint64_t offset() const { return offset_; }
  bool at_end() const { return at_end_; }  // nothing follows text()
  void consume(std::size_t count) {
    begin_ += count;
    offset_ += count;
  }
  // Reads more. False: at_end(), the text has its maximal length, or the source
  // failed (see error()).
  bool grow();
  bool is_full() const { return end_ - begin_ >= max_bytes_; }
  bool failed() const { return !status_.has_value(); }
  const Error& error() const { return status_.error(); }

  // Hands out the first `size` bytes of text(). The window goes on after them, in `spare` (any
  // buffer that is not in use). Not allowed at_end(), because restore() must be able to go back.
  TextPiece detach(std::size_t size, std::vector<char> spare);
  // Goes back to where the first of `pieces` was handed out; `pieces` are all since then, in order.
  // grow() then returns the later text again, in the same windows.
  void restore(std::vector<TextPiece> pieces);

 private:
  Result<std::size_t> read(std::size_t room);

  codec::ByteSource& source_;
  std::vector<char> buffer_;
  std::size_t window_bytes_, max_bytes_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t offset_ = 0;
  std::string again_;  // was read before restore(), and comes before the source
  std::size_t again_at_ = 0;
  bool at_end_ = false;
  Result<void> status_;
};

}  // namespace lanescope::format
