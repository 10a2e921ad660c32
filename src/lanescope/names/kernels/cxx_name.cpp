#include "lanescope/names/kernels/cxx_name.h"

#include <algorithm>

namespace lanescope::names::kernels {
namespace {

constexpr std::size_t kMostParts = 64;
constexpr std::string_view kAnonymous = "(anonymous namespace)";

// Tracks the depth of brackets. ">" closes only "<", so that "(8)>(0)" and "->" stay whole.
class Brackets {
 public:
  void take(char c) {
    if (c == '<' || c == '(' || c == '{' || c == '[') {
      open_.push_back(c);
    } else if (c == '>') {
      if (!open_.empty() && open_.back() == '<') open_.pop_back();
    } else if (c == ')' || c == '}' || c == ']') {
      const char wanted = c == ')' ? '(' : c == '}' ? '{' : '[';
      // A "<" that is still open was a less-than sign. Each bracket is popped once: linear.
      while (!open_.empty() && open_.back() == '<' && wanted != '<') open_.pop_back();
      if (!open_.empty() && open_.back() == wanted) open_.pop_back();
    }
  }
  std::size_t depth() const { return open_.size(); }

 private:
  std::vector<char> open_;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_operator_call(std::string_view text, std::size_t paren) {
  return text.substr(0, paren).ends_with("operator") && text.substr(paren).starts_with("()");
}

// Where the bracket at `open` closes, or the end of the text.
std::size_t closing(std::string_view text, std::size_t open) {
  Brackets brackets;
  for (std::size_t i = open; i < text.size(); ++i) {
    brackets.take(text[i]);
    if (brackets.depth() == 0) return i;
  }
  return text.size();
}

// "void ns::f<int>(float*) [clone]" -> "ns::f<int>".
std::string_view without_return_and_parameters(std::string_view text) {
  Brackets brackets;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (brackets.depth() == 0) {
      if (c == ' ') start = i + 1;
      if (c == '(' && text.substr(i).starts_with(kAnonymous)) {
        i += kAnonymous.size() - 1;
        continue;
      }
      if (c == '(' && is_operator_call(text, i)) {
        ++i;
        continue;
      }
      if (c == '(') {
        const std::size_t end = closing(text, i);
        const std::string_view rest = text.substr(std::min(end + 1, text.size()));
        if (!rest.starts_with("::")) return text.substr(start, i - start);
        i = end;  // a local entity: "f(int)::{lambda()#1}"
        continue;
      }
    }
    brackets.take(c);
  }
  return text.substr(start);
}

}  // namespace

std::vector<std::string_view> split_scopes(std::string_view qualified) {
  std::vector<std::string_view> parts;
  Brackets brackets;
  std::size_t start = 0;
  for (std::size_t i = 0; i + 1 < qualified.size() && parts.size() + 1 < kMostParts; ++i) {
    if (brackets.depth() == 0 && qualified[i] == ':' && qualified[i + 1] == ':') {
      parts.push_back(qualified.substr(start, i - start));
      start = i + 2;
      ++i;
      continue;
    }
    brackets.take(qualified[i]);
  }
  parts.push_back(qualified.substr(start));
  return parts;
}

std::vector<std::string_view> split_arguments(std::string_view inside) {
  std::vector<std::string_view> parts;
  Brackets brackets;
  std::size_t start = 0;
  for (std::size_t i = 0; i < inside.size() && parts.size() + 1 < kMostParts; ++i) {
    if (brackets.depth() == 0 && inside[i] == ',') {
      parts.push_back(trimmed(inside.substr(start, i - start)));
      start = i + 1;
      continue;
    }
    brackets.take(inside[i]);
  }
  if (!trimmed(inside).empty()) parts.push_back(trimmed(inside.substr(start)));
  return parts;
}

std::string_view without_brackets(std::string_view component) {
  if (component.starts_with(kAnonymous) || component.starts_with("{")) return component;
  if (component.starts_with("operator")) return component.substr(0, component.find('<'));
  return component.substr(0, component.find_first_of("<("));
}

std::string_view template_inside(std::string_view component) {
  const std::size_t open = component.find_first_of("<(");
  if (open == component.npos || component[open] != '<') return {};
  return component.substr(open + 1, closing(component, open) - open - 1);
}

CxxName cut_cxx_name(std::string_view text) {
  CxxName name;
  name.qualified = without_return_and_parameters(text);
  const auto parts = split_scopes(name.qualified);
  const std::string_view last = parts.back();
  const auto offset = static_cast<std::size_t>(last.data() - name.qualified.data());
  name.scope = name.qualified.substr(0, offset < 2 ? 0 : offset - 2);
  name.base = without_brackets(last);
  name.arguments = split_arguments(template_inside(last));
  return name;
}

}  // namespace lanescope::names::kernels
