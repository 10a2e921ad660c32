#include "lanescope/format/perfetto/packet_source.h"

#include <zlib.h>

#include <algorithm>
#include <span>

#include "lanescope/format/perfetto/fields.h"

namespace lanescope::format {
namespace {

constexpr std::size_t kReadBytes = 256 * 1024;

struct Varint {
  std::uint64_t value = 0;
  std::size_t size = 0;  // 0: none
};
Varint varint_at(std::string_view text) {
  Varint found;
  for (std::size_t i = 0; i < text.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    found.value |= static_cast<std::uint64_t>(byte & 0x7FU) << (7 * i);
    if (byte < 0x80U) {
      found.size = i + 1;
      break;
    }
  }
  return found;
}

}  // namespace

Result<std::size_t> PacketSource::fill(std::size_t size) {
  if (buffer_.size() - at_ >= size) return buffer_.size() - at_;
  buffer_.erase(0, at_);
  at_ = 0;
  while (buffer_.size() < size) {
    // Grows with what is there, not with what a length claims.
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kReadBytes);
    const Result<std::size_t> count = source_.read(std::span(buffer_).subspan(before));
    buffer_.resize(before + (count ? *count : 0));
    if (!count) return count.error();
    if (*count == 0) break;
  }
  return buffer_.size();
}

Result<bool> PacketSource::pass_over(std::uint64_t size) {
  while (size > 0) {
    LANESCOPE_TRY(const std::size_t have, fill(1));
    if (have == 0) return false;
    const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(size, have));
    at_ += step;
    consumed_ += step;
    size -= step;
  }
  return true;
}

// A trace is one message: field 1 is a packet; other fields are of newer versions.
Result<std::optional<std::string_view>> PacketSource::next() {
  while (!damaged_) {
    LANESCOPE_TRY(const std::size_t have, fill(20));  // two varints
    offset_ = consumed_;
    if (have == 0) return std::optional<std::string_view>();
    const Varint tag = varint_at(rest());
    const Varint size = varint_at(rest().substr(tag.size));
    const bool is_bytes = (tag.value & 7U) == 2;
    damaged_ = tag.size == 0 || size.size == 0 || (!is_bytes && (tag.value & 7U) != 0) ||
               tag.value >> 3U == 0;
    if (damaged_) break;
    at_ += tag.size + size.size;
    consumed_ += tag.size + size.size;
    if (!is_bytes) continue;  // a number
    const bool is_packet = tag.value >> 3U == pftrace::kPacket;
    if (!is_packet || size.value > max_packet_bytes_) {
      LANESCOPE_TRY(const bool passed, pass_over(size.value));
      damaged_ = !passed;
      too_long_ += is_packet && passed;
      continue;
    }
    const auto want = static_cast<std::size_t>(size.value);
    LANESCOPE_TRY(const std::size_t there, fill(want));
    damaged_ = there < want;
    if (damaged_) break;
    const std::string_view packet = rest().substr(0, want);
    at_ += want;
    consumed_ += want;
    return std::optional(packet);
  }
  return std::optional<std::string_view>();
}

std::optional<std::string> inflate_packets(std::string_view packed, std::size_t max_bytes) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  // zlib does not write to its input.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(std::min<std::size_t>(packed.size(), UINT32_MAX));
  std::string out;
  int code = Z_OK;
  while (code == Z_OK && out.size() <= max_bytes) {
    const std::size_t before = out.size();
    out.resize(before + std::max(kReadBytes, before));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size() - before, UINT32_MAX));
    code = inflate(&stream, Z_NO_FLUSH);
    out.erase(out.size() - std::min<std::size_t>(stream.avail_out, out.size()));
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END || out.size() > max_bytes) return std::nullopt;
  return out;
}

}  // namespace lanescope::format
