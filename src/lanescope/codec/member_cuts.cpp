#include "lanescope/codec/member_cuts.h"

#include <algorithm>

#include "lanescope/codec/compression.h"

namespace lanescope::codec {
namespace {

constexpr std::size_t kGzipHeaderBytes = 10;

// Magic, deflate, no reserved flag, an extra flag and a system that RFC 1952 knows: of random
// bytes, one place in 10^11 passes.
bool is_gzip_header(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  return bytes.starts_with("\x1f\x8b\x08") && (at(3) & 0xe0u) == 0 &&
         (at(8) == 0 || at(8) == 2 || at(8) == 4) && (at(9) <= 13 || at(9) == 255);
}

std::size_t gzip_cut(std::string_view packed, std::size_t at_least) {
  for (std::size_t at = packed.find("\x1f\x8b\x08", std::max<std::size_t>(at_least, 1));
       at != std::string_view::npos && at + kGzipHeaderBytes <= packed.size();
       at = packed.find("\x1f\x8b\x08", at + 1))
    if (is_gzip_header(packed.substr(at, kGzipHeaderBytes))) return at;
  return 0;
}

#if LANESCOPE_HAS_ZSTD
std::size_t zstd_cut(std::string_view packed, std::size_t at_least) {
  std::size_t end = 0;
  while (end < std::max<std::size_t>(at_least, 1)) {
    const std::size_t size = ZSTD_findFrameCompressedSize(packed.data() + end, packed.size() - end);
    if (ZSTD_isError(size)) break;
    end += size;
  }
  return end;
}
#else
std::size_t zstd_cut(std::string_view, std::size_t) { return 0; }
#endif

}  // namespace

std::size_t find_member_cut(Packing packing, std::string_view packed, std::size_t at_least) {
  return packing == Packing::kGzip ? gzip_cut(packed, at_least) : zstd_cut(packed, at_least);
}

}  // namespace lanescope::codec
