// Guards against our own mistakes. Ends a tool or a test and prints the place and the condition.
// Never used on outside input. Never used in record*/: there a broken invariant ends the recording
// and nothing else.
#pragma once

namespace lanescope {
[[noreturn]] void check_failed(const char* file, int line, const char* condition);
}  // namespace lanescope

#define LANESCOPE_CHECK(condition)        \
  (static_cast<bool>(condition) ? void(0) \
                                : ::lanescope::check_failed(__FILE__, __LINE__, #condition))
