// The rules that answer a question in words: "why is the first step slow?".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::explain {

// True: a question in words, not a rule's id. It has a space or a question mark.
bool is_question(std::string_view text);

struct AskedRules {
  bool all = false;              // "what should I fix first?": answered by the whole explanation
  std::vector<std::string> ids;  // if not `all`; empty: no rule has any of the words
};

// The rules whose question and id share most words with the text, up to five; a rule whose question
// has exactly these words is the only one. Rare words count more. Case, endings and small words
// such as "the" are ignored. Deterministic. Any thread.
AskedRules rules_for_question(std::string_view text);

}  // namespace lanescope::explain
