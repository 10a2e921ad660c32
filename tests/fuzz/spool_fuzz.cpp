// Recordings, any bytes and any layout that is read: reading returns, and what it read holds
// check_round_trip() or check_pieces(). spool_text.h says how an input becomes a spool.
#include "check_trace.h"
#include "fuzz_support.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/read_spool.h"
#include "spool_text.h"

LANESCOPE_FUZZ_MUTATOR(lanescope::fuzz::mutate_spool)

namespace {

// What a thread itself recorded belongs to one piece each, whatever is damaged.
std::uint64_t thread_events(const lanescope::Trace& trace) {
  using namespace lanescope;
  std::uint64_t count = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const CategoryKind kind = trace.kind(SliceId{i});
    count += kind == CategoryKind::kCpuOp || kind == CategoryKind::kUserAnnotation ? 1 : 0;
  }
  return count;
}

// In pieces: each can be written, and together they hold what the whole holds.
void check_pieces(std::string_view bytes, const lanescope::format::ReadSpoolOptions& options,
                  const lanescope::Trace& whole) {
  using namespace lanescope;
  std::string json;
  auto writer = format::KinetoJsonPieces::create(codec::string_sink(json));
  std::uint64_t events = 0;
  const auto stats = format::read_spool_bytes_pieces(
      bytes, 20,
      [&](const Trace& piece, std::size_t, std::size_t) {
        events += thread_events(piece);
        return writer.add(piece);
      },
      options);
  fuzz::require(stats.has_value(), "what is read whole is read in pieces");
  fuzz::require(writer.finish(*stats).has_value(), "pieces can be written");
  fuzz::require(events == thread_events(whole), "pieces hold what the whole holds");
  const auto again = format::read_trace_bytes(json, fuzz::small_reads());
  fuzz::require(again.has_value(), "what was written in pieces can be read");
  fuzz::check_losses(*stats, again->import_stats(), json);
}

}  // namespace

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
  // One of the two promises an input: both would halve the inputs.
  if (fuzz::choice_of(input) % 2 == 0)
    fuzz::check_round_trip(*trace);
  else
    check_pieces(bytes, options, *trace);
  return 0;
}
