// Recognises gzip and zstd by their first bytes and unpacks them while reading. Damage ends the
// text; it is not an error. A wrong checksum does not end it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/codec/byte_source.h"

namespace lanescope::codec {

enum class Packing : std::uint8_t { kPlain, kGzip, kZstd };
const char* packing_name(Packing packing);  // "plain", "gzip", "zstd"

struct UnpackOptions {
  // Real traces compress 10 to 60 times. After `free_bytes` of output, more than `max_ratio` times
  // the packed bytes counts as a decompression bomb: read() returns kLimit.
  std::uint64_t max_ratio = 250;
  std::uint64_t free_bytes = 256ull << 20;
  // Up to `threads` threads, the calling one among them, unpack gzip members or zstd frames ahead of
  // the reader. Text, damage and errors are the same for any number.
  unsigned threads = 1;
  // How many packed bytes a thread takes at once; a member longer than 32 times that is unpacked by
  // one thread.
  std::size_t part_bytes = 64 << 10;
};

// What is wrong with the compressed stream; complete once read() has returned 0.
struct UnpackReport {
  std::optional<std::uint64_t> damage;  // unpacked offset at which a cut or damaged stream ended
  std::string damage_reason;            // "the stream ends early", ...
  // Unpacked offset at the end of the first member whose checksum is wrong. Its text was given all the same, and so are the members
  // after it.
  std::optional<std::uint64_t> wrong_checksum;
  std::optional<std::uint64_t> trailing;  // packed offset of bytes after the last member
  std::uint64_t parts_ahead = 0;          // groups of members that were unpacked ahead
};

// Gives unpacked bytes; done_bytes() and total_bytes() count packed ones. Several gzip members or
// zstd frames make one text.
class UnpackedSource : public ByteSource {
 public:
  virtual Packing packing() const = 0;
  virtual const UnpackReport& report() const = 0;
  virtual std::uint64_t unpacked_bytes() const = 0;
};

// Memory: about 0.4 MB for gzip, and the window of a zstd frame, at most 128 MB. Several threads also
// hold the packed bytes and the text of the open parts: in traces less than 1 MB for each part, at
// most 64 MB in all. Until the first long part is known, each part may take 32 MB. kUnavailable: the
// stream is zstd and this build has no zstd.
Result<std::unique_ptr<UnpackedSource>> open_unpacked(std::unique_ptr<ByteSource> packed,
                                                      const UnpackOptions& options = {});

}  // namespace lanescope::codec
