#include "lanescope/cli/budget_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "lanescope/cli/text.h"

#if LANESCOPE_HAS_TOML
namespace lanescope::cli {
namespace {
struct BrokenAssertion {};
[[noreturn]] void break_assertion() { throw BrokenAssertion(); }
}  // namespace
}  // namespace lanescope::cli

// toml++ 3.3 asserts that a key follows '[' before it has looked: a file that is only "[" would end
// the command, and in a build with NDEBUG the compiler is told what is not so. Its assertions
// therefore throw here, in every build.
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

class BudgetReader {
 public:
  explicit BudgetReader(std::string_view name) : name_(name) {}

  Result<Budget> run(const toml::table& root) {
    for (const auto& [key, node] : root) {
      LANESCOPE_TRY_VOID(top(key.str(), node));
    }
    if (budget_.limits.empty() && budget_.quiet_rules.empty())
      return Error{Errc::kInvalidArgument,
                   fmt::format("{}: expected a limit under [at_most] or [at_least], or rules under "
                               "[rules]; found none",
                               name_)};
    // A table of TOML is ordered by name; a report reads better in the order of the file.
    std::stable_sort(budget_.limits.begin(), budget_.limits.end(),
                     [](const Limit& a, const Limit& b) { return a.line < b.line; });
    return std::move(budget_);
  }

 private:
  Error wrong(const toml::node& node, std::string_view what) const {
    return {Errc::kInvalidArgument,
            fmt::format("{}, line {}: {}", name_, node.source().begin.line, what)};
  }

  Result<void> top(std::string_view key, const toml::node& node) {
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
    if (key != "at_most" && key != "at_least" && key != "rules")
      return wrong(
          node,
          fmt::format("there is no key '{}' here{}", key,
                      did_you_mean(key, {"per", "allow_damage", "at_most", "at_least", "rules"})));
    if (table == nullptr) return wrong(node, fmt::format("{} expects a table: [{}]", key, key));
    return key == "rules" ? rules(*table) : limits(*table, key == "at_most");
  }

  Result<void> limits(const toml::table& table, bool at_most) {
    std::vector<std::string> known;
    for (const explain::Measure& each : explain::all_measures()) known.emplace_back(each.key);
    for (const auto& [key, node] : table) {
      const explain::Measure* measure = explain::find_measure(key.str());
      if (measure == nullptr)
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

  Result<void> rules(const toml::table& table) {
    std::vector<std::string> known;
    for (const explain::Rule& each : explain::all_rules()) known.emplace_back(each.id);
    for (const auto& [key, node] : table) {
      if (key.str() != "must_not_fire")
        return wrong(node, fmt::format("there is no key '{}' here{}", key.str().substr(0, 100),
                                       did_you_mean(key.str(), {"must_not_fire"})));
      const toml::array* list = node.as_array();
      if (list == nullptr)
        return wrong(node, "must_not_fire expects a list of rules, such as [\"host-sync\"]");
      for (const toml::node& each : *list) {
        const auto id = each.value<std::string>();
        if (!id || !each.is_string())
          return wrong(each, "must_not_fire expects rules in quotes, such as \"host-sync\"");
        if (std::find(known.begin(), known.end(), *id) == known.end())
          return wrong(each, fmt::format("there is no rule '{}' (lanescope explain --list){}",
                                         id->substr(0, 100), did_you_mean(*id, known)));
        if (std::find(budget_.quiet_rules.begin(), budget_.quiet_rules.end(), *id) ==
            budget_.quiet_rules.end())
          budget_.quiet_rules.push_back(*id);
      }
    }
    return {};
  }

  std::string_view name_;
  Budget budget_;
};

}  // namespace

Result<explain::Budget> parse_budget(std::string_view text, std::string_view name) {
  try {
    const toml::table root = toml::parse(text);
    return BudgetReader(name).run(root);
  } catch (const toml::parse_error& error) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}, line {}: expected TOML; {}", name, error.source().begin.line,
                             error.description())};
  } catch (const BrokenAssertion&) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: expected TOML; found a '[' or a key that nothing follows", name)};
  }
}

#else

Result<explain::Budget> parse_budget(std::string_view, std::string_view) {
  return Error{Errc::kUnavailable,
               "this lanescope was built without toml++ and reads no budgets; on Debian: apt-get "
               "install libtomlplusplus-dev, then build again"};
}

#endif

Result<explain::Budget> read_budget(const std::string& path) {
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
  return parse_budget(text, path);
}

}  // namespace lanescope::cli
