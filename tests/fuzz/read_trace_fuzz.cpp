// Any bytes: read_trace_bytes must return, in memory that fits the input; what it reads must be
// writable, and reading that must be clean and say the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/testing/trace_text.h"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  const std::string_view bytes(static_cast<const char*>(static_cast<const void*>(data)), size);
  // A seed that is a spool goes to another reader, which has no writer to be compared with.
  const auto trace = format::read_trace_bytes(bytes);
  if (!trace) {
    require(!trace.error().message.empty(), "an error says what was found");
    return 0;
  }
  require(trace->memory_bytes() < (8u << 20) + 200 * trace->import_stats().unpacked_bytes,
          "memory fits the input");
  const std::string written = format::kineto_json_text(*trace);
  const auto again = format::read_trace_bytes(written);
  require(again.has_value(), "what was written can be read");
  require(!again->import_stats().lost_anything(), "nothing of it is lost");
  require(testing::trace_text(*trace) == testing::trace_text(*again), "it says the same");
  return 0;
}
