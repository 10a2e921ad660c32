// Source: the Itanium C++ ABI, section "External Names (a.k.a. Mangling)". A substitution (S_,
// S0_, ...) means an earlier part, numbered in the order in which the parts were completed. The
// parts are kept as text with a limit for all together, because names can refer to names that
// refer to names.
#include "lanescope/names/kernels/mangled_name.h"

#include <cctype>
#include <utility>
#include <vector>

#include "lanescope/names/kernels/tokens.h"

namespace lanescope::names::kernels {
namespace {

constexpr std::size_t kBudget = 256 * 1024;
constexpr int kDeepest = 96;

const char* builtin_type(char code) {
  switch (code) {
    case 'v':
      return "void";
    case 'w':
      return "wchar_t";
    case 'b':
      return "bool";
    case 'c':
      return "char";
    case 'a':
      return "signed char";
    case 'h':
      return "unsigned char";
    case 's':
      return "short";
    case 't':
      return "unsigned short";
    case 'i':
      return "int";
    case 'j':
      return "unsigned int";
    case 'l':
      return "long";
    case 'm':
      return "unsigned long";
    case 'x':
      return "long long";
    case 'y':
      return "unsigned long long";
    case 'n':
      return "__int128";
    case 'o':
      return "unsigned __int128";
    case 'f':
      return "float";
    case 'd':
      return "double";
    case 'e':
      return "long double";
    case 'g':
      return "__float128";
    case 'z':
      return "...";
    default:
      return nullptr;
  }
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<std::string> function() {
    if (!take("_Z")) return std::nullopt;
    std::string name;
    if (read_name(name)) return name;
    // The outermost name up to the part that could not be read.
    return good_.empty() ? std::nullopt : std::optional<std::string>(good_);
  }

 private:
  // Counts nesting; gives up on a name that is deeper, or longer when written out, than
  // any real one.
  struct Depth {
    explicit Depth(Reader& of) : reader(of) { ++reader.depth_; }
    ~Depth() { --reader.depth_; }
    bool ok() const { return reader.depth_ <= kDeepest; }
    Reader& reader;
  };

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool spend(const std::string& text) {
    spent_ += text.size() + 1;
    return spent_ <= kBudget;
  }
  bool remember(const std::string& text) {
    if (!spend(text)) return false;
    seen_.push_back(text);
    return true;
  }

  std::optional<std::size_t> number() {
    if (!std::isdigit(static_cast<unsigned char>(peek()))) return std::nullopt;
    std::size_t value = 0;
    while (std::isdigit(static_cast<unsigned char>(peek()))) {
      value = value * 10 + static_cast<std::size_t>(text_[at_++] - '0');
      if (value > kBudget) return std::nullopt;
    }
    return value;
  }

  bool source_name(std::string& out) {
    const auto length = number();
    if (!length || *length == 0 || *length > text_.size() - at_) return false;
    const std::string_view word = text_.substr(at_, *length);
    at_ += *length;
    out += word.starts_with("_GLOBAL__N") ? std::string_view("(anonymous namespace)") : word;
    while (peek() == 'B') {  // ABI tags
      ++at_;
      std::string tag;
      if (!source_name(tag)) return false;
    }
    return true;
  }

  // S_, S0_, Sa, ...; "St" is read by the callers.
  bool substitution(std::string& out) {
    if (!take("S")) return false;
    static constexpr std::pair<char, const char*> kShort[] = {
        {'a', "std::allocator"}, {'b', "std::basic_string"}, {'s', "std::string"},
        {'i', "std::istream"},   {'o', "std::ostream"},      {'d', "std::iostream"}};
    for (const auto& [code, name] : kShort)
      if (peek() == code) {
        ++at_;
        out += name;
        return true;
      }
    const auto index = sequence();
    if (!index || *index >= seen_.size() || !spend(seen_[*index])) return false;
    out += seen_[*index];
    return true;
  }
  // "_" is 0, "0_" 1, ..., "Z_" 36: base 36.
  std::optional<std::size_t> sequence() {
    std::size_t value = 0;
    bool any = false;
    while (peek() != '_') {
      const char c = peek();
      const bool digit = c >= '0' && c <= '9';
      if (!digit && !(c >= 'A' && c <= 'Z')) return std::nullopt;
      value = value * 36 + static_cast<std::size_t>(digit ? c - '0' : c - 'A' + 10);
      if (value > kBudget) return std::nullopt;
      any = true;
      ++at_;
    }
    ++at_;
    return any ? value + 1 : 0;
  }

  bool template_parameter(std::string& out) {
    if (!take("T")) return false;
    const auto index = sequence();
    if (!index) return false;
    out.append("T").append(std::to_string(*index));
    return true;
  }

  // A name that is not inside N...E, with its template arguments.
  bool read_name(std::string& out) {
    const Depth depth(*this);
    if (!depth.ok()) return false;
    const bool outermost = depth_ == 1;
    if (peek() == 'N') return nested_name(out, outermost, false);
    if (peek() == 'Z') return local_name(out);
    bool known = false;  // a substitution is already a candidate
    if (take("St")) {
      out += "std::";
      if (!component(out)) return false;
    } else if (peek() == 'S') {
      if (!substitution(out)) return false;
      known = true;
    } else if (!component(out)) {
      return false;
    }
    if (outermost) good_ = out;
    if (peek() != 'I') return true;
    return (known || remember(out)) && template_arguments(out);
  }

  // One part of a qualified name.
  bool component(std::string& out) {
    take("L");  // internal linkage
    if (std::isdigit(static_cast<unsigned char>(peek()))) return source_name(out);
    if (take("cl")) {
      out += "operator()";
      return true;
    }
    if (take("Ut")) {
      number();
      out += "{unnamed type}";
      return take("_");
    }
    if (take("Ul")) return lambda(out);
    const char c = peek();
    if ((c == 'C' || c == 'D') && std::isdigit(static_cast<unsigned char>(peek(1)))) {
      at_ += 2;
      out += c == 'C' ? "{constructor}" : "{destructor}";
      return true;
    }
    if (c >= 'a' && c <= 'z' && peek(1) >= 'a' && peek(1) <= 'z') {
      out += "operator_";  // and the code: the only operator that is a kernel is ()
      out += text_.substr(at_, 2);
      at_ += 2;
      return true;
    }
    return false;
  }
  bool lambda(std::string& out) {
    std::string parameters;
    if (!types_until_end(parameters)) return false;
    const auto index = number();
    if (!take("_")) return false;
    out += concat({"{lambda(", parameters, ")#", std::to_string(index ? *index + 2 : 1), "}"});
    return true;
  }

  bool nested_name(std::string& out, bool outermost, bool is_type) {
    if (!take("N")) return false;
    while (peek() == 'r' || peek() == 'V' || peek() == 'K') ++at_;
    if (peek() == 'R' || peek() == 'O') ++at_;
    std::string prefix;
    while (!take("E")) {
      if (at_ >= text_.size()) return false;
      bool fresh = true;
      if (take("St")) {
        prefix = "std";
        fresh = false;
      } else if (peek() == 'S') {
        if (!prefix.empty() || !substitution(prefix)) return false;
        fresh = false;
      } else if (peek() == 'T') {
        if (!template_parameter(prefix)) return false;
      } else if (peek() == 'I') {
        if (prefix.empty() || !template_arguments(prefix)) return false;
      } else {
        if (!prefix.empty()) prefix += "::";
        if (!component(prefix)) return false;
      }
      if (outermost) good_ = prefix;
      if (fresh && (peek() != 'E' || is_type) && !remember(prefix)) return false;
    }
    out += prefix;
    return spend(prefix);
  }

  // Z <function> E <entity>: "f(int)::{lambda()#1}".
  bool local_name(std::string& out) {
    if (!take("Z")) return false;
    std::string function, parameters;
    if (!read_name(function)) return false;
    if (peek() == 'E') {
      ++at_;
    } else {
      // A template's return type comes before its parameters.
      std::string result;
      if (function.ends_with('>') && !read_type(result)) return false;
      if (!types_until_end(parameters)) return false;
    }
    out += concat({function, "(", parameters, ")::"});
    if (take("s")) {
      out += "{string literal}";
    } else if (!read_name(out)) {
      return false;
    }
    if (take("_")) number();
    return true;
  }

  bool types_until_end(std::string& out) {
    while (!take("E")) {
      std::string type;
      if (at_ >= text_.size() || !read_type(type)) return false;
      if (type == "void") continue;  // f(void)
      if (!out.empty()) out += ", ";
      out += type;
      if (!spend(type)) return false;
    }
    return true;
  }

  bool template_arguments(std::string& out) {
    if (!take("I")) return false;
    std::string inside;
    while (!take("E")) {
      if (at_ >= text_.size() || !template_argument(inside)) return false;
    }
    out += concat({"<", inside, ">"});
    return spend(inside);
  }
  bool template_argument(std::string& list) {
    const Depth depth(*this);
    if (!depth.ok()) return false;
    if (take("J")) {
      while (!take("E"))
        if (at_ >= text_.size() || !template_argument(list)) return false;
      return true;
    }
    std::string item;
    if (take("Tn") && !read_type(item)) return false;  // the parameter's declared type
    item.clear();
    const bool expression = take("X");
    if (expression && !take("ad")) return false;  // only the address of something
    if (expression) item.push_back('&');
    if (peek() == 'L' ? !literal(item) : expression || !read_type(item)) return false;
    if (expression && !take("E")) return false;
    if (!list.empty()) list += ", ";
    list += item;
    return spend(item);
  }
  bool literal(std::string& out) {
    if (!take("L")) return false;
    if (take("_Z")) {
      std::string parameters;
      if (!read_name(out)) return false;
      return types_until_end(parameters);
    }
    std::string type;
    if (!read_type(type)) return false;
    std::string value;
    while (peek() != 'E') {
      if (at_ >= text_.size() || value.size() > 64) return false;
      value += text_[at_++];
    }
    ++at_;
    if (value.starts_with('n')) value[0] = '-';
    if (type == "bool") {
      out += value == "0" ? "false" : "true";
    } else if (type == "int") {
      out += value;
    } else if (type == "unsigned int") {
      out.append(value).append("u");
    } else if (type == "long") {
      out.append(value).append("l");
    } else if (type == "unsigned long") {
      out.append(value).append("ul");
    } else {
      out += concat({"(", type, ")", value});
    }
    return true;
  }

  bool read_type(std::string& out) {
    const Depth depth(*this);
    if (!depth.ok() || at_ >= text_.size()) return false;
    const char c = peek();
    if (const char* name = builtin_type(c)) {
      ++at_;
      out += name;
      return true;
    }
    std::string type;
    switch (c) {
      case 'r':
      case 'V':
      case 'K':
        return suffixed(out, c == 'K' ? " const" : c == 'V' ? " volatile" : " restrict");
      case 'P':
        return suffixed(out, "*");
      case 'R':
        return suffixed(out, "&");
      case 'O':
        return suffixed(out, "&&");
      case 'C':
        return suffixed(out, " _Complex");
      case 'D':
        return d_type(out);
      case 'F':
        return function_type(out);
      case 'A': {
        ++at_;
        const auto count = number();
        if (!take("_") || !read_type(type)) return false;
        type += concat({"[", count ? std::to_string(*count) : std::string(), "]"});
        break;
      }
      case 'M': {
        ++at_;
        std::string member;
        if (!read_type(type) || !read_type(member)) return false;
        type = concat({member, " ", type, "::*"});
        break;
      }
      case 'u': {
        ++at_;
        if (!source_name(type)) return false;
        break;
      }
      case 'T': {
        if (!template_parameter(type)) return false;
        if (peek() == 'I' && (!remember(type) || !template_arguments(type))) return false;
        break;
      }
      case 'N':
        return nested_name(out, false, true);
      case 'S':
        if (peek(1) != 't') {
          if (!substitution(type)) return false;
          if (peek() != 'I') {
            out += type;
            return true;
          }
          if (!template_arguments(type)) return false;
          break;
        }
        [[fallthrough]];
      default:
        if (!read_name(type)) return false;
    }
    out += type;
    return remember(type);
  }
  bool suffixed(std::string& out, const char* suffix) {
    ++at_;
    std::string type;
    if (!read_type(type)) return false;
    type += suffix;
    out += type;
    return remember(type);
  }
  bool d_type(std::string& out) {
    if (take("DF16_")) return out += "_Float16", true;
    if (take("DF16b")) return out += "std::bfloat16_t", true;
    if (take("Dh")) return out += "__fp16", true;
    if (take("Dn")) return out += "decltype(nullptr)", true;
    if (take("Da")) return out += "auto", true;
    if (take("Di")) return out += "char32_t", true;
    if (take("Ds")) return out += "char16_t", true;
    if (take("Du")) return out += "char8_t", true;
    std::string type;
    if (take("Dp")) {
      if (!read_type(type)) return false;
      out += type;
      return remember(type);
    }
    if (take("Dv")) {
      const auto count = number();
      if (!count || !take("_") || !read_type(type)) return false;
      type += concat({" __vector(", std::to_string(*count), ")"});
      out += type;
      return remember(type);
    }
    return false;
  }
  bool function_type(std::string& out) {
    ++at_;
    take("Y");
    std::string result, parameters;
    if (!read_type(result) || !types_until_end(parameters)) return false;
    const std::string type = concat({result, " (", parameters, ")"});
    out += type;
    return remember(type);
  }

  std::string_view text_;
  std::size_t at_ = 0, spent_ = 0;
  int depth_ = 0;
  std::vector<std::string> seen_;
  std::string good_;
};

}  // namespace

std::optional<std::string> demangled_function(std::string_view mangled) {
  return Reader(mangled).function();
}

}  // namespace lanescope::names::kernels
