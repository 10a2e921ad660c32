#include "lanescope/format/kineto_json/text_window.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "lanescope/codec/json_index.h"

namespace lanescope::format {

TextWindow::TextWindow(codec::ByteSource& source, std::size_t window_bytes, std::size_t max_bytes)
    : source_(source),
      buffer_(window_bytes + codec::kJsonPadding),
      window_bytes_(window_bytes),
      max_bytes_(std::max(max_bytes, window_bytes)) {}

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
    const auto count = source_.read(std::span(buffer_).subspan(end_, room - end_));
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

}  // namespace lanescope::format
