// Perfetto traces, any bytes: reading returns, its memory fits the input, and what it read can be
// written as JSON and is read again with as many slices, instants and samples. Mutations are
// libFuzzer's own. JSON does not say what a track of another writer is, so the texts may differ.
#include "check_trace.h"
#include "fuzz_support.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  const auto trace = fuzz::read_or_error(data, size);
  if (!trace) return 0;
  fuzz::require(trace->memory_bytes() < (8u << 20) + 200 * trace->import_stats().unpacked_bytes,
                "memory fits the input");
  const std::string written = format::kineto_json_text(*trace);
  const auto again = format::read_trace_bytes(written, fuzz::small_reads());
  fuzz::require(again.has_value(), "what was written can be read", written);
  fuzz::require(again->slices().size() == trace->slices().size(), "it has the same slices",
                written);
  fuzz::require(again->instants().size() == trace->instants().size(), "and instants", written);
  fuzz::require(again->counters().size() == trace->counters().size(), "and samples", written);
  return 0;
}
