#include "lanescope/cli/budget_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/cli/text.h"

#if LANESCOPE_HAS_TOML
namespace lanescope::cli {
namespace {
struct BrokenAssertion {};
[[noreturn]] void break_assertion() { throw BrokenAssertion(); }
}  // namespace
}  // namespace lanescope::cli

// toml++ 3.3 asserts without a check that a key follows '[': a file with only "[" would end the
// command, and with NDEBUG the compiler would assume something false. So its assertions throw here,
// in every build.
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(expression) \
  (static_cast<bool>(expression) ? void() : ::lanescope::cli::break_assertion())
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
#endif

namespace lanescope::cli {

#if LANESCOPE_HAS_TOML
namespace {

using explain::Budget;
using explain::Limit;

std::string did_you_mean(std::string_view key, const std::vector<std::string>& known) {
  const auto close = close_matches(std::string(key.substr(0, 100)), known);
  return close.empty() ? fmt::format("; known are {}", joined_or(known))
                       : fmt::format("; did you mean {}?", joined_or(close));
}

// What a budget of a trace and one of a job do not share.
struct BudgetWords {
  std::span<const explain::Measure> measures;
  std::vector<std::string> top;  // keys of the file's top level
  std::string_view list;         // the table with must_not_fire or must_not_be
  std::string_view list_key;
  std::string_view list_thing;  // "rules, such as [\"host-sync\"]"
};

BudgetWords trace_words() {
  return {explain::all_measures(),
          {"per", "allow_damage", "at_most", "at_least", "rules"},
          "rules",
          "must_not_fire",
          "rules in quotes, such as [\"host-sync\"]"};
}

BudgetWords job_words() {
  return {ranks::job_measures(),
          {"allow_damage", "at_most", "at_least", "verdict"},
          "verdict",
          "must_not_be",
          "verdicts in quotes, such as [\"straggler\"]"};
}

class BudgetReader {
 public:
  BudgetReader(std::string_view name, BudgetWords words) : name_(name), words_(std::move(words)) {}

  Result<Budget> run(const toml::table& root) {
    for (const auto& [key, node] : root) {
      LANESCOPE_TRY_VOID(top(key.str(), node));
    }
    if (budget_.limits.empty() && budget_.quiet_rules.empty())
      return Error{Errc::kInvalidArgument,
                   fmt::format("{}: expected a limit under [at_most] or [at_least], or {} under "
                               "[{}]; found none",
                               name_, words_.list_key, words_.list)};
    // A TOML table is ordered by name, but a report should have the order of the file.
    sort_rows(budget_.limits.begin(), budget_.limits.end(),
              [](const Limit& a, const Limit& b) { return a.line < b.line; });
    return std::move(budget_);
  }

 private:
  Error wrong(const toml::node& node, std::string_view what) const {
    return {Errc::kInvalidArgument,
            fmt::format("{}, line {}: {}", name_, node.source().begin.line, what)};
  }

  Result<void> top(std::string_view key, const toml::node& node) {
    if (std::find(words_.top.begin(), words_.top.end(), key) == words_.top.end())
      return wrong(node,
                   fmt::format("there is no key '{}' here{}", key, did_you_mean(key, words_.top)));
    if (key == "per") {
      const auto value = node.value<std::string>();
      if (!value || (*value != "step" && *value != "recording"))
        return wrong(node, "per expects \"step\" or \"recording\"");
      budget_.per_recording = *value == "recording";
      return {};
    }
    if (key == "allow_damage") {
      if (!node.is_boolean()) return wrong(node, "allow_damage expects true or false");
      budget_.allow_damage = node.value_or(false);
      return {};
    }
    const toml::table* table = node.as_table();
    if (table == nullptr) return wrong(node, fmt::format("{} expects a table: [{}]", key, key));
    return key == words_.list ? names(*table) : limits(*table, key == "at_most");
  }

  Result<void> limits(const toml::table& table, bool at_most) {
    std::vector<std::string> known;
    for (const explain::Measure& each : words_.measures) known.emplace_back(each.key);
    for (const auto& [key, node] : table) {
      const auto measure =
          std::find_if(words_.measures.begin(), words_.measures.end(),
                       [&](const explain::Measure& each) { return each.key == key.str(); });
      if (measure == words_.measures.end())
        return wrong(node, fmt::format("there is no measure '{}'{}", key.str().substr(0, 100),
                                       did_you_mean(key.str(), known)));
      std::string text;
      if (const auto value = node.as_string())
        text = value->get();
      else if (const auto whole = node.as_integer())
        text = fmt::format("{}", whole->get());
      else if (const auto real = node.as_floating_point())
        text = fmt::format("{:f}", real->get());
      auto limit = explain::parse_limit(*measure, at_most, text);
      if (!limit) return wrong(node, limit.error().message);
      limit->line = static_cast<int>(node.source().begin.line);
      budget_.limits.push_back(*std::move(limit));
    }
    return {};
  }

  Result<void> names(const toml::table& table) {
    const bool of_rules = words_.list == "rules";
    std::vector<std::string> known;
    if (of_rules)
      for (const explain::Rule* each : explain::all_rules()) known.emplace_back(each->id);
    else
      known = ranks::job_verdict_names();
    for (const auto& [key, node] : table) {
      if (key.str() != words_.list_key)
        return wrong(node, fmt::format("there is no key '{}' here{}", key.str().substr(0, 100),
                                       did_you_mean(key.str(), {std::string(words_.list_key)})));
      const toml::array* list = node.as_array();
      if (list == nullptr)
        return wrong(node,
                     fmt::format("{} expects a list of {}", words_.list_key, words_.list_thing));
      for (const toml::node& each : *list) {
        const auto id = each.value<std::string>();
        if (!id || !each.is_string())
          return wrong(each, fmt::format("{} expects {}", words_.list_key, words_.list_thing));
        if (std::find(known.begin(), known.end(), *id) == known.end())
          return wrong(
              each, fmt::format("there is no {} '{}'{}{}", of_rules ? "rule" : "verdict",
                                id->substr(0, 100), of_rules ? " (lanescope explain --list)" : "",
                                did_you_mean(*id, known)));
        if (std::find(budget_.quiet_rules.begin(), budget_.quiet_rules.end(), *id) ==
            budget_.quiet_rules.end())
          budget_.quiet_rules.push_back(*id);
      }
    }
    return {};
  }

  std::string_view name_;
  BudgetWords words_;
  Budget budget_;  // of a job: quiet_rules are its verdicts
};

// The line of the first character beyond ASCII outside of strings and comments. No budget needs one,
// and toml++ 3.3 has undefined behaviour for some of them (U+00A1 to U+0499 between tokens).
std::optional<int> find_non_ascii(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the mark of UTF-8
  int line = 1;
  std::string_view quote;  // that ends the open string; empty: none is open
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const std::string_view rest = text.substr(at);
    if (c == '\n') {
      ++line;
      if (quote.size() == 1) quote = {};
    } else if (!quote.empty()) {
      if (c == '\\' && quote[0] == '"' && rest.size() > 1 && rest[1] != '\n') {
        ++at;
      } else if (rest.starts_with(quote)) {
        at += quote.size() - 1;
        // """ may follow one or two quotes that belong to the text.
        for (int more = 0; quote.size() == 3 && more < 2 && at + 1 < text.size(); ++more)
          if (text[at + 1] == c) ++at;
        quote = {};
      }
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size()) - 1;
    } else if (c == '"' || c == '\'') {
      const bool is_long = rest.starts_with(c == '"' ? "\"\"\"" : "'''");
      quote = rest.substr(0, is_long ? 3 : 1);
      at += quote.size() - 1;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      return line;
    }
  }
  return std::nullopt;
}

Result<Budget> parse_words(std::string_view text, std::string_view name, BudgetWords words) {
  if (const auto line = find_non_ascii(text))
    return Error{
        Errc::kInvalidArgument,
        fmt::format("{}, line {}: expected ASCII characters outside of quotes and comments", name,
                    *line)};
  try {
    const toml::table root = toml::parse(text);
    return BudgetReader(name, std::move(words)).run(root);
  } catch (const toml::parse_error& error) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}, line {}: expected TOML; {}", name, error.source().begin.line,
                             error.description())};
  } catch (const BrokenAssertion&) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: expected TOML; found a '[' or a key that nothing follows", name)};
  }
}

}  // namespace

Result<explain::Budget> parse_budget(std::string_view text, std::string_view name) {
  return parse_words(text, name, trace_words());
}

Result<ranks::JobBudget> parse_job_budget(std::string_view text, std::string_view name) {
  LANESCOPE_TRY(Budget budget, parse_words(text, name, job_words()));
  return ranks::JobBudget{budget.allow_damage, std::move(budget.limits),
                          std::move(budget.quiet_rules)};
}

#else

namespace {
Error without_toml() {
  return {Errc::kUnavailable,
          "this lanescope was built without toml++ and reads no budgets; on Debian: apt-get "
          "install libtomlplusplus-dev, then build again"};
}
}  // namespace

Result<explain::Budget> parse_budget(std::string_view, std::string_view) { return without_toml(); }
Result<ranks::JobBudget> parse_job_budget(std::string_view, std::string_view) {
  return without_toml();
}

#endif

namespace {

Result<std::string> read_budget_text(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad() || (in.gcount() == 0 && errno != 0))
    return Error{Errc::kIo, fmt::format("expected a budget file, could not read '{}': {}", path,
                                        std::strerror(errno == 0 ? EIO : errno))};
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMostBytes)
    return Error{Errc::kLimit,
                 fmt::format("expected a budget file of at most 1 MiB, '{}' is larger", path)};
  return text;
}

}  // namespace

Result<explain::Budget> read_budget(const std::string& path) {
  LANESCOPE_TRY(const std::string text, read_budget_text(path));
  return parse_budget(text, path);
}

Result<ranks::JobBudget> read_job_budget(const std::string& path) {
  LANESCOPE_TRY(const std::string text, read_budget_text(path));
  return parse_job_budget(text, path);
}

}  // namespace lanescope::cli
