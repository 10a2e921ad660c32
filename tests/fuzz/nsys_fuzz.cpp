// SQLite files as Nsight Systems exports them, any bytes: reading returns, and what it read holds
// check_round_trip(). Mutations are libFuzzer's own, on files with pages of 512 bytes.
#include "check_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const auto trace = lanescope::fuzz::read_or_error(data, size))
    lanescope::fuzz::check_round_trip(*trace);
  return 0;
}
