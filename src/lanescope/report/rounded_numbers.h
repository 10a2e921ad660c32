// Numbers for a first look: three digits and a unit ("16.7 ms", "941 us"), whole percent ("<1 %").
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/explain/finding.h"

namespace lanescope::report {

std::string rounded_time(std::int64_t ns);
std::string rounded_percent(double ratio);
// The sentence with its numbers rounded in this way. `markdown`: escapes text from the trace.
std::string rounded_sentence(const explain::Sentence& sentence, bool markdown = false);

// The same sentence in pieces: each number or name for which something can be shown is a piece of
// its own.
struct SentencePiece {
  std::string text;
  const char* shows = "";  // Value::shows
  SliceId slice = kNone<SliceId>;
  bool is_link() const { return *shows != '\0' || slice != kNone<SliceId>; }
};
std::vector<SentencePiece> rounded_pieces(const explain::Sentence& sentence);

}  // namespace lanescope::report
