#include "lanescope/explain/questions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::explain {
namespace {

constexpr std::size_t kMostRules = 5;

// Words that say nothing about the subject.
constexpr std::string_view kSmallWords[] = {
    "a",    "all",   "am",    "an",    "and",    "any",  "anything", "are",  "as",    "at",
    "be",   "by",    "can",   "could", "did",    "do",   "does",     "for",  "from",  "had",
    "has",  "have",  "how",   "i",     "if",     "in",   "is",       "it",   "its",   "itself",
    "less", "many",  "me",    "more",  "much",   "my",   "no",       "not",  "of",    "on",
    "one",  "or",    "our",   "out",   "really", "s",    "so",       "some", "still", "such",
    "than", "that",  "the",   "there", "this",   "to",   "too",      "was",  "were",  "what",
    "when", "where", "which", "why",   "with",   "work", "working",  "works"};

// A question with only these words asks about everything.
constexpr std::string_view kGeneralWords[] = {
    "about",   "back",      "best",     "change",      "code",     "cost",     "costs",
    "current", "fast",      "faster",   "first",       "fix",      "function", "gain",
    "get",     "give",      "go",       "goes",        "going",    "happens",  "help",
    "improve", "inference", "issue",    "iteration",   "last",     "long",     "look",
    "main",    "make",      "makes",    "matter",      "model",    "most",     "need",
    "next",    "optimise",  "optimize", "performance", "priority", "problem",  "program",
    "run",     "save",      "script",   "should",      "size",     "slow",     "slower",
    "speed",   "spend",     "start",    "step",        "steps",    "takes",    "tell",
    "time",    "trace",     "training", "up",          "use",      "used",     "would",
    "wrong"};

// Several words with one meaning.
constexpr std::pair<std::string_view, std::string_view> kPhrasesOfQuestions[] = {
    {"out of memory", "oom"},
    {"data loader", "dataloader"},
    {"all reduce", "allreduce"},
    {"warm up", "warmup"},
    {"host to device", "htod"},
    {"device to host", "dtoh"},
    {"tensor core", "tensorcore"},
    {"batch size", "batchsize"},
    {"how long", "time"},
    {"channels last", "channelslast"},
    {"channels_last", "channelslast"},
    {"num_workers", "loaderprocess"},
    {"learning rate", "optimizer"},
    // Not what "optimize" asks for.
    {"optimizer", "sgd"},
    {"optimiser", "sgd"},
};

// Words with the same meaning, in questions of users and of rules.
constexpr std::pair<std::string_view, std::string_view> kSameWords[] = {
    {"bottleneck", "bound"},
    {"bubble", "gap"},
    {"stall", "wait"},
    {"block", "wait"},
    {"synchronize", "sync"},
    {"synchronise", "sync"},
    {"synchronization", "sync"},
    {"synchronisation", "sync"},
    {"nccl", "collective"},
    {"allreduce", "collective"},
    {"ddp", "collective"},
    {"loader", "dataloader"},
    {"batch", "dataloader"},
    {"input", "dataloader"},
    {"data", "dataloader"},
    {"warmup", "first"},
    {"cold", "first"},
    {"startup", "first"},
    {"fusion", "fuse"},
    {"cudagraph", "graph"},
    {"checkpoint", "recompute"},
    {"amp", "scaler"},
    {"jit", "compile"},
    {"inductor", "compile"},
    {"dynamo", "compile"},
    {"dtoh", "copy"},
    {"htod", "copy"},
    {"d2h", "copy"},
    {"h2d", "copy"},
    {"memcpy", "copy"},
    {"cudamemcpy", "copy"},
    {"cudamemcpyasync", "copy"},
    {"hipmemcpy", "copy"},
    {"hipmemcpyasync", "copy"},
    {"hipmemcpywithstream", "copy"},
    {"hipstreamsynchronize", "cudastreamsynchronize"},
    {"hipdevicesynchronize", "cudadevicesynchronize"},
    {"hiplaunchkernel", "cudalaunchkernel"},
    {"hipmalloc", "cudamalloc"},
    {"hipfree", "cudafree"},
    {"transfer", "copy"},
    {"gemm", "matmul"},
};

// Without its ending, so that "copies" and "copied" equal "copy".
std::string stem(std::string word) {
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (const std::string_view end : {"ing", "ed", "es", "er", "s", "e"})
      if (!shorter && word.size() > end.size() + 2 && word.ends_with(end) &&
          !(end == "s" && word.ends_with("ss"))) {  // "loss" must not become "los"
        word.erase(word.size() - end.size());
        shorter = true;
      }
  }
  if (word.size() > 3 && word.ends_with('y')) word.back() = 'i';
  return word;
}

// The word that kSameWords uses for it, else the word itself.
std::string canonical_word(const std::string& stemmed) {
  static const std::map<std::string, std::string> same = [] {
    std::map<std::string, std::string> stems;
    for (const auto& [from, to] : kSameWords)
      stems.emplace(stem(std::string(from)), stem(std::string(to)));
    return stems;
  }();
  const auto found = same.find(stemmed);
  return found == same.end() ? stemmed : found->second;
}

std::string lower(std::string_view text) {
  std::string low(text);
  for (char& letter : low)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  for (const auto& [phrase, word] : kPhrasesOfQuestions)
    for (std::size_t at = low.find(phrase); at != std::string::npos;
         at = low.find(phrase, at + word.size()))
      low.replace(at, phrase.size(), word);
  return low;
}

std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  const auto add = [&] {
    if (!word.empty() &&
        std::find(std::begin(kSmallWords), std::end(kSmallWords), word) == std::end(kSmallWords))
      words.insert(canonical_word(stem(word)));
    word.clear();
  };
  for (const char letter : lower(text)) {
    if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9'))
      word += letter;
    else
      add();
  }
  add();
  return words;
}

const std::set<std::string>& general_words() {
  static const std::set<std::string> words = [] {
    std::set<std::string> stems;
    for (const std::string_view word : kGeneralWords) stems.insert(stem(std::string(word)));
    return stems;
  }();
  return words;
}

bool is_about_steps(const std::set<std::string>& words) {
  return words.contains(stem("step")) || words.contains(stem("iteration"));
}

// "why is the last step slow?", "what happened in step 7?".
bool asks_of_one_step(const std::set<std::string>& words) {
  const auto picks = [](const std::string& word) {
    return word == stem("last") || word.find_first_not_of("0123456789") == std::string::npos;
  };
  return is_about_steps(words) && std::any_of(words.begin(), words.end(), picks);
}

// "what should I fix first?", but not "what makes the first step slow?".
bool is_general(const std::set<std::string>& words) {
  const std::set<std::string>& general = general_words();
  if (words.empty() || !std::includes(general.begin(), general.end(), words.begin(), words.end()))
    return false;
  return !(words.contains("first") && is_about_steps(words)) && !asks_of_one_step(words);
}

// The words of all rules, computed at the first question.
struct RuleWords {
  struct Row {
    std::string_view id;
    std::set<std::string> question, all;  // all: with those of the id
    std::set<std::string> meant_by;       // Rule::meant_by
    bool is_about_single_steps = false;
  };
  std::vector<Row> rules;
  std::map<std::string, int> rules_with;  // that have the word
};

const RuleWords& words_of_rules() {
  static const RuleWords words = [] {
    RuleWords made;
    for (const Rule* rule : all_rules()) {
      RuleWords::Row row{rule->id, words_of(rule->question), words_of(rule->id),
                         words_of(rule->meant_by), rule->is_about_single_steps};
      row.all.insert(row.question.begin(), row.question.end());
      for (const std::string& word : row.all) ++made.rules_with[word];
      made.rules.push_back(std::move(row));
    }
    return made;
  }();
  return words;
}

}  // namespace

bool is_question(std::string_view text) {
  return text.find_first_of(" ?\t\n") != std::string_view::npos;
}

AskedRules rules_for_question(std::string_view text) {
  struct Candidate {
    const RuleWords::Row* rule = nullptr;
    double score = 0;
  };
  const RuleWords& known = words_of_rules();
  const std::set<std::string> asked = words_of(text);
  std::vector<Candidate> candidates;
  for (const RuleWords::Row& rule : known.rules) {
    if (!asked.empty() && rule.question == asked) return {false, {std::string(rule.id)}};
    candidates.push_back({&rule});
  }
  if (is_general(asked)) return {true, {}};
  const bool asks_of_one = asks_of_one_step(asked);
  const auto is_meant = [&](const RuleWords::Row& rule) {
    return (asks_of_one && rule.is_about_single_steps) ||
           std::any_of(asked.begin(), asked.end(),
                       [&](const std::string& word) { return rule.meant_by.contains(word); });
  };
  double best = 0;
  for (Candidate& candidate : candidates) {
    if (is_meant(*candidate.rule)) candidate.score += 1;
    for (const std::string& word : asked)
      if (candidate.rule->all.contains(word))
        candidate.score += (general_words().contains(word) ? 0.3 : 1.0) / known.rules_with.at(word);
    best = std::max(best, candidate.score);
  }
  AskedRules found;
  if (best == 0) return found;
  sort_rows(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  for (const Candidate& candidate : candidates)
    if (found.ids.size() < kMostRules && candidate.score >= best * 0.5)
      found.ids.emplace_back(candidate.rule->id);
  return found;
}

}  // namespace lanescope::explain
