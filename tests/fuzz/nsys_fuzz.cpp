// SQLite files as Nsight Systems exports them, any bytes: reading returns, and what it read holds
// check_round_trip(). Mutations are libFuzzer's own, on files with pages of 512 bytes.
#include "check_trace.h"
#include "fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  const auto trace = format::read_trace_bytes(fuzz::view(data, size), fuzz::small_reads());
  if (trace)
    fuzz::check_round_trip(*trace);
  else
    fuzz::require(!trace.error().message.empty(), "an error says what was found");
  return 0;
}
