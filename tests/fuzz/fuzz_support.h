// What all fuzz targets share: broken promises, random choices, and the way into libFuzzer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

// libFuzzer's own mutations: bytes, words of the corpus.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace lanescope::fuzz {

// Says what was promised and ends the run; libFuzzer then keeps the input.
void require(bool condition, std::string_view promise, std::string_view details = {});
// The same for two texts that must be equal: prints the first line that differs.
void require_equal(std::string_view a, std::string_view b, std::string_view promise);

std::string_view view(const std::uint8_t* data, std::size_t size);

// For a target that does one of several things with an input: which one. The same input gives the
// same number, so that a finding can be repeated.
std::uint64_t choice_of(std::string_view input);

// Choices that depend on libFuzzer's seed alone, so that a run can be repeated (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::size_t below(std::size_t count) { return count == 0 ? 0 : next() % count; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  std::string_view text(std::initializer_list<std::string_view> values) { return pick(values); }
  // Small, near a power of two, or any.
  std::uint64_t edge();

 private:
  std::uint64_t state_;
};

// One in four mutations is libFuzzer's own; the others are `mutate` of the text, cut to max_size.
std::size_t mutate_with(std::uint8_t* data, std::size_t size, std::size_t max_size,
                        unsigned int seed, std::string (*mutate)(std::string_view, Random&));

}  // namespace lanescope::fuzz

// The custom mutator of a target: LANESCOPE_FUZZ_MUTATOR(mutate_json).
#define LANESCOPE_FUZZ_MUTATOR(mutate)                                                      \
  extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,      \
                                                 std::size_t max_size, unsigned int seed) { \
    return ::lanescope::fuzz::mutate_with(data, size, max_size, seed, mutate);              \
  }
