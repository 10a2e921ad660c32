// The compression libraries of this build, and their pointers. Not a public header: only
// inflater.cpp and pack.cpp use it. gzip comes from ISA-L if the build has it, else from zlib; zstd
// is optional (LANESCOPE_HAS_ISAL, LANESCOPE_HAS_ZSTD: 0 or 1).
#pragma once
#if LANESCOPE_HAS_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>
#endif
#if LANESCOPE_HAS_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include <algorithm>
#include <climits>
#include <cstddef>

namespace lanescope::codec {

inline unsigned char* bytes(char* at) {
  return static_cast<unsigned char*>(static_cast<void*>(at));
}
// The C libraries take input through non-const pointers but do not write through them.
inline unsigned char* input_bytes(const char* at) { return bytes(const_cast<char*>(at)); }
// They count in 32 bits; the rest waits for the next call.
inline unsigned capped(std::size_t size) {
  return static_cast<unsigned>(std::min<std::size_t>(size, INT_MAX));
}

}  // namespace lanescope::codec
