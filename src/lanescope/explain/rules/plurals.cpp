#include "lanescope/explain/rules/plurals.h"

#include <string_view>
#include <utility>

namespace lanescope::explain::rules {

Sentence say_counted(const Facts& facts, std::string pattern, std::vector<Value> values) {
  std::string out;
  std::size_t next = 0;
  bool is_one = false;
  const std::string_view text = pattern;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at, 2) == "{}") {
      if (next < values.size() && values[next].kind == Value::Kind::kCount)
        is_one = values[next].integer == 1;
      ++next;
      out += "{}";
      at += 2;
      continue;
    }
    const std::size_t bar = text.find('|', at), close = text.find(']', at);
    if (text[at] != '[' || close == text.npos || bar > close) {
      out += text[at++];
      continue;
    }
    const std::string_view one = text.substr(at + 1, bar - at - 1);
    const std::string_view many = text.substr(bar + 1, close - bar - 1);
    if (one == "step" && !facts.steps.marked)
      out += "recording";
    else
      out += is_one ? one : many;
    at = close + 1;
  }
  return say(std::move(out), std::move(values));
}

}  // namespace lanescope::explain::rules
