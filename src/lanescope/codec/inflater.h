// The decoders that unpack.cpp uses, with one interface. gzip: ISA-L if the build has it, else
// zlib; zstd if the build has it.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "lanescope/codec/unpack.h"

namespace lanescope::codec {

struct InflateStep {
  std::size_t used = 0, made = 0;  // bytes of input read, bytes of output written
  bool member_ended = false;       // a gzip member or zstd frame is complete
  bool checksum_is_wrong = false;  // that of the member which has ended
  const char* error = nullptr;     // why the stream cannot go on
};

// One stream, one thread. An empty `packed` flushes what the decoder still holds.
class Inflater {
 public:
  virtual ~Inflater() = default;
  virtual InflateStep step(std::string_view packed, std::span<char> into) = 0;
  virtual void reset() = 0;  // the next member starts
};

std::unique_ptr<Inflater> gzip_inflater();
std::unique_ptr<Inflater> zstd_inflater();  // null: this build has no zstd
// For members that are unpacked into one piece of memory: refuses zstd windows over 32 MB. A wrong checksum of a zstd frame is an
// error, and its text may be missing.
std::unique_ptr<Inflater> part_inflater(Packing packing);
// By the first four bytes.
Packing detect_packing(std::string_view head);

}  // namespace lanescope::codec
