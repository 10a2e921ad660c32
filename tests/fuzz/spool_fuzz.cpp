// Recordings, any bytes and any layout that is read: reading returns, and what it read holds
// check_round_trip(). spool_text.h says how an input becomes a spool.
#include "check_trace.h"
#include "fuzz_support.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/format/spool/read_spool.h"
#include "spool_text.h"

LANESCOPE_FUZZ_MUTATOR(lanescope::fuzz::mutate_spool)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  const std::string_view input = fuzz::view(data, size);
  const std::string_view bytes = fuzz::unfold_spool(input);
  format::ReadSpoolOptions options;
  options.live = !input.empty() && (input[0] & fuzz::kLive);
  const auto trace = format::read_spool_bytes(bytes, options);
  if (!trace) {
    fuzz::require(!trace.error().message.empty(), "an error says what was found");
    return 0;
  }
  // An input of a kilobyte is a file of a megabyte; a Trace must not grow with its zeroes.
  fuzz::require(trace->memory_bytes() < (8u << 20) + 400 * size, "memory fits what was recorded");
  fuzz::check_round_trip(*trace);
  return 0;
}
