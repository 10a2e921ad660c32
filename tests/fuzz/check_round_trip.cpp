#include <algorithm>
#include <limits>

#include "check_trace.h"
#include "fuzz_support.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/tensor_identities.h"
#include "lanescope/model/recording_losses.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::fuzz {

format::ReadOptions small_reads() {
  format::ReadOptions options;
  options.window_bytes = 8192;
  options.threads = 1;
  return options;
}

Result<Trace> read_or_error(const std::uint8_t* data, std::size_t size) {
  Result<Trace> trace = format::read_trace_bytes(view(data, size), small_reads());
  require(trace || !trace.error().message.empty(), "an error says what was found");
  return trace;
}

void check_losses(const ImportStats& before, const ImportStats& after, std::string_view written) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < kImportIssueCount; ++i) {
    const auto issue = static_cast<ImportIssue>(i);
    if (import_issue_info(issue).severity != Severity::kLost) continue;
    const bool travels = std::find(kRecordingLosses.begin(), kRecordingLosses.end(), issue) !=
                         kRecordingLosses.end();
    const std::uint64_t expected = travels ? std::min(before[issue].count, kMost) : 0;
    require(after[issue].count == expected, "it lacks what the recording lacks, nothing else",
            written);
  }
}

void check_round_trip(const Trace& trace) {
  require(trace.memory_bytes() < (8u << 20) + 200 * trace.import_stats().unpacked_bytes,
          "memory fits the input");
  const std::string written = format::kineto_json_text(trace);
  const auto again = format::read_trace_bytes(written, small_reads());
  require(again.has_value(), "what was written can be read", written);
  check_losses(trace.import_stats(), again->import_stats(), written);
  // A file does not have the identities of tensors (docs/decisions/tensor_identities.md).
  const auto text = [](const Trace& each) {
    return testing::trace_text(each, format::kTensorIdentities);
  };
  require_equal(text(trace), text(*again), "it says the same");
  require_equal(written, format::kineto_json_text(*again), "it is written again as it was");
}

}  // namespace lanescope::fuzz
