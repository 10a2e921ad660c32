#include "lanescope/codec/packed_input.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace lanescope::codec {
namespace {

constexpr std::size_t kInputBytes = 256 * 1024;

// Small inputs need a small window; 0: a pipe of unknown size.
std::size_t bytes_for(std::uint64_t total) {
  if (total == 0 || total > kInputBytes) return kInputBytes;
  return std::max<std::size_t>(static_cast<std::size_t>(total), 64);
}

}  // namespace

PackedInput::PackedInput(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(bytes_for(source_->total_bytes())) {}

Result<std::string_view> PackedInput::peek(std::size_t want) {
  while (end_ - begin_ < want && !source_ended_) {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (buffer_.size() < want) buffer_.resize(want);
    // After a long look ahead, the window stays as small as the cache likes it.
    const std::size_t room = std::min(buffer_.size(), std::max(want, end_ + kInputBytes)) - end_;
    LANESCOPE_TRY(const std::size_t count, source_->read(std::span(buffer_).subspan(end_, room)));
    if (count == 0) source_ended_ = true;
    end_ += count;
  }
  return std::string_view(buffer_.data() + begin_, end_ - begin_);
}

void PackedInput::take(std::size_t count, std::vector<char>& into) {
  into.assign(buffer_.data() + begin_, buffer_.data() + begin_ + count);
  consume(count);
}

void PackedInput::give_back(std::string_view bytes) {
  if (bytes.size() > begin_) {
    std::vector<char> larger(bytes.size() + std::max(buffer_.size(), end_ - begin_));
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_),
              larger.begin() + static_cast<std::ptrdiff_t>(bytes.size()));
    end_ = bytes.size() + (end_ - begin_);
    begin_ = bytes.size();
    buffer_ = std::move(larger);
  }
  begin_ -= bytes.size();
  std::copy(bytes.begin(), bytes.end(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
}

}  // namespace lanescope::codec
