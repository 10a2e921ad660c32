// Numbers for a first look: three digits and a unit ("16.7 ms", "941 us"), whole percent ("<1 %").
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/explain/finding.h"

namespace lanescope::report {

std::string rounded_time(std::int64_t ns);
std::string rounded_percent(double ratio);
// The sentence with its numbers rounded in this way. `markdown`: escapes text from the trace.
std::string rounded_sentence(const explain::Sentence& sentence, bool markdown = false);

}  // namespace lanescope::report
