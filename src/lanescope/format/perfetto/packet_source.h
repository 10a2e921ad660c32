// The packets of a Perfetto trace, one after the other, without holding the file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/codec/byte_source.h"

namespace lanescope::format {

// One thread; borrows the source. Memory: the largest packet, at most `max_packet_bytes`, and 256 KB.
class PacketSource {
 public:
  PacketSource(codec::ByteSource& source, std::uint64_t max_packet_bytes)
      : source_(source), max_packet_bytes_(max_packet_bytes) {}

  // The next packet; valid until the next call. Nothing: the end, or damage after which no packet
  // can be found. A packet over the limit is passed over and counted. Errors: the source's.
  Result<std::optional<std::string_view>> next();
  std::uint64_t offset() const { return offset_; }  // of the packet that next() gave last
  std::uint64_t too_long() const { return too_long_; }
  // The file ends inside a packet, or has bytes that are no packet. At offset().
  bool is_damaged() const { return damaged_; }

 private:
  // At least `size` bytes in the buffer, unless the file ends before. How many there are.
  Result<std::size_t> fill(std::size_t size);
  Result<bool> pass_over(std::uint64_t size);
  std::string_view rest() const { return std::string_view(buffer_).substr(at_); }

  codec::ByteSource& source_;
  std::uint64_t max_packet_bytes_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::uint64_t consumed_ = 0, offset_ = 0, too_long_ = 0;
  bool damaged_ = false;
};

// Unpacks the packets that a packet holds in compressed form (zlib). Nothing: damaged, or more than
// `max_bytes`.
std::optional<std::string> inflate_packets(std::string_view packed, std::size_t max_bytes);

}  // namespace lanescope::format
