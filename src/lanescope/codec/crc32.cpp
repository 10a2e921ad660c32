// By V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
// Intel 2009: the remainder of 128 bits is carried over the next ones by two multiplications.
#include "lanescope/codec/crc32.h"

#include <zlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lanescope {
namespace {

#if defined(__x86_64__)
#define LANESCOPE_CRC_TARGET __attribute__((target("pclmul,sse4.1")))

constexpr std::size_t kBlock = 16, kLanes = 4;  // bytes; blocks that are carried side by side

// The paper's names, bits reversed: x to the power of so many bits, modulo the polynomial.
constexpr std::uint64_t kOver64Bytes[2] = {0x154442bd4, 0x1c6e41596};  // k1, k2
constexpr std::uint64_t kOver16Bytes[2] = {0x1751997d0, 0x0ccaa009e};  // k3, k4
constexpr std::uint64_t kOver4Bytes = 0x163cd6124;                     // k5
constexpr std::uint64_t kPolynomial = 0x1db710641, kInverse = 0x1f7011641;

LANESCOPE_CRC_TARGET inline __m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
LANESCOPE_CRC_TARGET inline __m128i pair(std::uint64_t low, std::uint64_t high) {
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}
LANESCOPE_CRC_TARGET inline __m128i carry(__m128i from, __m128i over, __m128i to) {
  const __m128i low = _mm_clmulepi64_si128(from, over, 0x00);
  const __m128i high = _mm_clmulepi64_si128(from, over, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), to);
}

// `size` is a multiple of kBlock and at least kLanes of it. Takes and returns the inverted sum.
LANESCOPE_CRC_TARGET std::uint32_t fold(std::uint32_t sum, const std::byte* bytes,
                                        std::size_t size) {
  __m128i lanes[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = load(bytes + lane * kBlock);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(sum)));
  const std::byte* const end = bytes + size;
  bytes += kLanes * kBlock;
  const __m128i over64 = pair(kOver64Bytes[0], kOver64Bytes[1]);
  for (; static_cast<std::size_t>(end - bytes) >= kLanes * kBlock; bytes += kLanes * kBlock)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = carry(lanes[lane], over64, load(bytes + lane * kBlock));
  const __m128i over16 = pair(kOver16Bytes[0], kOver16Bytes[1]);
  __m128i all = lanes[0];
  for (std::size_t lane = 1; lane < kLanes; ++lane) all = carry(all, over16, lanes[lane]);
  for (; bytes != end; bytes += kBlock) all = carry(all, over16, load(bytes));
  // 128 bits to 64, to 32.
  const __m128i low32 = _mm_setr_epi32(~0, 0, ~0, 0);
  all = _mm_xor_si128(_mm_srli_si128(all, 8), _mm_clmulepi64_si128(all, over16, 0x10));
  all = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(all, low32), pair(kOver4Bytes, 0), 0x00),
                      _mm_srli_si128(all, 4));
  const __m128i polynomial = pair(kPolynomial, kInverse);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(all, low32), polynomial, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), polynomial, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(all, quotient), 1));
}
#endif

}  // namespace

std::uint32_t crc32(std::uint32_t sum, const std::byte* bytes, std::size_t size) noexcept {
#if defined(__x86_64__)
  static const bool can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  const std::size_t blocks = size / kBlock * kBlock;
  if (can_fold && blocks >= kLanes * kBlock) {
    sum = ~fold(~sum, bytes, blocks);
    bytes += blocks;
    size -= blocks;
  }
#endif
  return static_cast<std::uint32_t>(crc32_z(sum, reinterpret_cast<const Bytef*>(bytes), size));
}

}  // namespace lanescope
