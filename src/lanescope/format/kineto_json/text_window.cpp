#include "lanescope/format/kineto_json/text_window.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "lanescope/codec/json_index.h"

namespace lanescope::format {

TextWindow::TextWindow(codec::ByteSource& source, std::size_t window_bytes, std::size_t max_bytes)
    : source_(source),
      buffer_(window_bytes + codec::kJsonPadding),
      window_bytes_(window_bytes),
      max_bytes_(std::max(max_bytes, window_bytes)) {}

Result<std::size_t> TextWindow::read(std::size_t room) {
  if (again_at_ == again_.size())
    return source_.read(std::span(buffer_).subspan(end_, room - end_));
  const std::size_t count = again_.copy(buffer_.data() + end_, room - end_, again_at_);
  again_at_ += count;
  if (again_at_ == again_.size()) again_ = {}, again_at_ = 0;
  return count;
}

bool TextWindow::grow() {
  if (at_end_ || failed() || is_full()) return false;
  const std::size_t held = end_ - begin_;
  // Moves only the tail of an event: whole windows are used up before the next read.
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, held);
    begin_ = 0;
    end_ = held;
  }
  if (held * 2 >= buffer_.size() - codec::kJsonPadding)
    buffer_.resize(std::max(window_bytes_, std::min(max_bytes_, held * 2)) + window_bytes_ +
                   codec::kJsonPadding);
  const std::size_t room = buffer_.size() - codec::kJsonPadding;
  while (end_ < room) {
    const auto count = read(room);
    if (!count) {
      status_ = count.error();
      return false;
    }
    if (*count == 0) {
      at_end_ = true;
      break;
    }
    end_ += *count;
  }
  return end_ > held || at_end_;
}

TextPiece TextWindow::detach(std::size_t size, std::vector<char> spare) {
  spare.resize(buffer_.size());
  const std::size_t left = end_ - begin_ - size;
  std::memcpy(spare.data(), buffer_.data() + begin_ + size, left);
  TextPiece piece{std::exchange(buffer_, std::move(spare)), begin_, end_, size, offset_};
  begin_ = 0;
  end_ = left;
  offset_ += size;
  return piece;
}

void TextWindow::restore(std::vector<TextPiece> pieces) {
  // Each piece had the end of the one before it, too.
  std::string later;
  std::uint64_t covered = pieces.front().offset + (pieces.front().end - pieces.front().begin);
  const auto add = [&](std::uint64_t offset, std::string_view text) {
    if (offset + text.size() <= covered) return;
    later.append(text.substr(static_cast<std::size_t>(covered - offset)));
    covered = offset + text.size();
  };
  for (const TextPiece& piece : pieces)
    add(piece.offset, {piece.buffer.data() + piece.begin, piece.end - piece.begin});
  add(offset_, text());
  again_ = later.append(again_, again_at_, std::string::npos);
  again_at_ = 0;
  at_end_ = false;
  buffer_ = std::move(pieces.front().buffer);
  begin_ = pieces.front().begin;
  end_ = pieces.front().end;
  offset_ = pieces.front().offset;
}

}  // namespace lanescope::format
