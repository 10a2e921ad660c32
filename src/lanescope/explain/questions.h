// The rules that answer a question in words: "why is the first step slow?".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::explain {

// Is it words, and no rule's id? With a space or a question mark.
bool is_question(std::string_view text);

struct AskedRules {
  bool all = false;              // "what should I fix first?": the whole explanation answers it
  std::vector<std::string> ids;  // else; empty: no rule has any of the words
};

// The rules whose question and id share most with the text: the rule with that very question, else
// up to five. Rare words count more; case, endings and the small words of English count nothing.
// Deterministic. Any thread.
AskedRules rules_for_question(std::string_view text);

}  // namespace lanescope::explain
