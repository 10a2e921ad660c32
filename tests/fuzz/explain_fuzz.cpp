// What is computed from a trace and printed: check_analyses() of any JSON.
#include "check_trace.h"
#include "fuzz_support.h"
#include "json_mutator.h"

LANESCOPE_FUZZ_MUTATOR(lanescope::fuzz::mutate_json)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  const std::string_view text = fuzz::view(data, size);
  const auto trace = format::read_trace_bytes(text, fuzz::small_reads());
  if (trace) fuzz::check_analyses(*trace, fuzz::choice_of(text));
  return 0;
}
