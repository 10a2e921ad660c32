// Kineto and Chrome JSON, any bytes: reading returns, and what it read holds check_round_trip(). The
// number of threads that read it changes nothing, damage included.
#include "check_trace.h"
#include "fuzz_support.h"
#include "json_mutator.h"
#include "lanescope/format/index_file/index_helpers_test.h"

LANESCOPE_FUZZ_MUTATOR(lanescope::fuzz::mutate_json)

namespace {

// All that a Trace has, or the error. Small windows: threads start after the first few.
std::string read_with(const std::uint8_t* data, std::size_t size, unsigned threads) {
  lanescope::format::ReadOptions options = lanescope::fuzz::small_reads();
  options.window_bytes = 128;
  options.threads = threads;
  const auto trace =
      lanescope::format::read_trace_bytes(lanescope::fuzz::view(data, size), options);
  return trace ? lanescope::format::testing_index::index_text(*trace) : trace.error().message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const auto trace = lanescope::fuzz::read_or_error(data, size))
    lanescope::fuzz::check_round_trip(*trace);
  if (size > 512)
    lanescope::fuzz::require_equal(read_with(data, size, 1), read_with(data, size, 3),
                                   "threads change nothing");
  return 0;
}
