#include "fuzz_support.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lanescope::fuzz {
namespace {

int shown(std::string_view text) {
  return static_cast<int>(std::min<std::size_t>(text.size(), 4000));
}

std::string_view line_at(std::string_view text, std::size_t at) {
  at = std::min(at, text.size());
  const std::size_t before = text.substr(0, at).rfind('\n');
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

}  // namespace

void require(bool condition, std::string_view promise, std::string_view details) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %.*s\n%.*s\n", shown(promise), promise.data(),
               shown(details), details.data());
  std::abort();
}

void require_equal(std::string_view a, std::string_view b, std::string_view promise) {
  if (a == b) return;
  const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const std::string_view one = line_at(a, static_cast<std::size_t>(at_a - a.begin()));
  const std::string_view other = line_at(b, static_cast<std::size_t>(at_b - b.begin()));
  std::fprintf(stderr, "first: %.*s\nthen:  %.*s\n", shown(one), one.data(), shown(other),
               other.data());
  require(false, promise);
}

std::string_view view(const std::uint8_t* data, std::size_t size) {
  return {static_cast<const char*>(static_cast<const void*>(data)), size};
}

std::uint64_t choice_of(std::string_view input) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char byte : input) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return Random(hash).next();
}

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t Random::edge() {
  switch (below(4)) {
    case 0:
      return below(16);
    case 1:
      return (std::uint64_t{1} << below(64)) - 1 + below(3);
    case 2:
      return 0 - (std::uint64_t{1} << below(64)) + below(3);
    default:
      return next() >> below(64);
  }
}

std::size_t mutate_with(std::uint8_t* data, std::size_t size, std::size_t max_size,
                        unsigned int seed, std::string (*mutate)(std::string_view, Random&)) {
  Random random(seed);
  if (random.one_in(4)) return LLVMFuzzerMutate(data, size, max_size);
  const std::string mutated = mutate(view(data, size), random);
  const std::size_t kept = std::min(mutated.size(), max_size);
  if (kept > 0) std::memcpy(data, mutated.data(), kept);
  return kept;
}

}  // namespace lanescope::fuzz
