// JSON as profilers really write it, any bytes: what the mender says is done is strict JSON, strict
// input stays as it was, and an answer given early is the answer with all of the text.
#include "fuzz_support.h"
#include "json_mutator.h"
#include "lanescope/base/json_escape.h"
#include "lanescope/base/json_value.h"
#include "lanescope/codec/json_event_bounds.h"
#include "lanescope/codec/json_mend.h"

LANESCOPE_FUZZ_MUTATOR(lanescope::fuzz::mutate_json)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lanescope;
  using codec::MendStatus;
  const std::string_view text = fuzz::view(data, size);
  std::string mended;
  const codec::MendResult result = codec::mend_json(text, true, mended);
  fuzz::require(result.used <= size, "no more is used than is there");
  fuzz::require(result.status != MendStatus::kNeedMore, "nothing more can come");
  fuzz::require(mended.size() <= 64 + 8 * size, "memory fits the text");
  if (result.status == MendStatus::kDone) {
    fuzz::require(codec::is_strict_json(mended), "what was mended is strict", mended);
    std::string again;
    const codec::MendResult second = codec::mend_json(mended, true, again);
    fuzz::require(second.status == MendStatus::kDone && !second.mends.any(), "once is enough",
                  mended);
    fuzz::require_equal(mended, again, "strict text stays as it was");
  }
  if (codec::is_strict_json(text)) {
    fuzz::require(result.status == MendStatus::kDone && !result.mends.any(),
                  "strict text is taken");
    fuzz::require_equal(text, mended, "byte for byte");
  }
  const std::size_t start = codec::find_event_start(text, 0);
  if (start != std::string_view::npos)
    fuzz::require(start < size && text[start] == '{', "an event starts with its bracket");
  fuzz::require(codec::find_last_event_end(text) <= size, "an event ends in the text");
  if (const auto value = parse_json(text); value && value->is_object()) value->find("ph");
  std::string plain;
  for (const auto policy : {EscapePolicy::kStrict, EscapePolicy::kLenient})
    if (unescape_json(text, plain, policy))
      fuzz::require(plain.size() <= size, "a text is no longer than its escapes");
  return 0;
}
