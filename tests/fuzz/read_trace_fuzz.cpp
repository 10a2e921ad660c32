// Kineto and Chrome JSON, any bytes: reading returns, and what it read holds check_round_trip().
#include "check_trace.h"
#include "fuzz_support.h"
#include "json_mutator.h"

LANESCOPE_FUZZ_MUTATOR(lanescope::fuzz::mutate_json)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const auto trace = lanescope::fuzz::read_or_error(data, size))
    lanescope::fuzz::check_round_trip(*trace);
  return 0;
}
