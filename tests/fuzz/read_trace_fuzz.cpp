// Kineto and Chrome JSON, any bytes: reading returns, and what it read holds check_round_trip(). Neither the
// number of threads that read it changes anything, nor that events are known from those before them; damage included.
#include "check_trace.h"
#include "fuzz_support.h"
#include "json_mutator.h"
#include "lanescope/format/index_file/index_helpers_test.h"

LANESCOPE_FUZZ_MUTATOR(lanescope::fuzz::mutate_json)

namespace {

// All that a Trace has, or the error. Small windows: threads start after the first few.
std::string read_with(const std::uint8_t* data, std::size_t size, unsigned threads,
                      bool learn_patterns = true) {
  lanescope::format::ReadOptions options = lanescope::fuzz::small_reads();
  options.window_bytes = 128;
  options.threads = threads;
  options.learn_patterns = learn_patterns;
  const auto trace =
      lanescope::format::read_trace_bytes(lanescope::fuzz::view(data, size), options);
  return trace ? lanescope::format::testing_index::index_text(*trace) : trace.error().message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const auto trace = lanescope::fuzz::read_or_error(data, size))
    lanescope::fuzz::check_round_trip(*trace);
  const std::string in_full = read_with(data, size, 1, false);
  lanescope::fuzz::require_equal(in_full, read_with(data, size, 1),
                                 "events known from others are read as in full");
  if (size > 512)
    lanescope::fuzz::require_equal(in_full, read_with(data, size, 3), "threads change nothing");
  return 0;
}
