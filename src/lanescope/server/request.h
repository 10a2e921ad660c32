// The JSON body of a request: one flat object of numbers, texts and lists of numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lanescope/base/result.h"

namespace lanescope::server {

inline constexpr std::size_t kMostRequestBytes = std::size_t{1} << 20;

struct Note {
  std::int64_t time_ns = 0;
  std::string text;
  std::optional<std::uint32_t> lane, slice;
};

class Request {
 public:
  // kInvalidArgument: not one JSON object, too large, too deep; the message says what was expected.
  // Takes any bytes. Ignores members that no answer uses. Linear. Any thread.
  static Result<Request> parse(std::string_view body);

  // Nothing: it is not there. Wrong types and values out of range are errors of kInvalidArgument.
  Result<std::optional<std::int64_t>> number(std::string_view key, std::int64_t smallest,
                                             std::int64_t largest) const;
  Result<std::int64_t> needed(std::string_view key, std::int64_t smallest,
                              std::int64_t largest) const;
  Result<std::string> text(std::string_view key, std::string_view otherwise) const;
  Result<bool> flag(std::string_view key, bool otherwise) const;
  Result<std::vector<std::uint32_t>> list(std::string_view key, std::size_t most) const;
  bool has(std::string_view key) const { return members_.find(key) != members_.end(); }
  Result<std::vector<Note>> notes() const;  // of the member "notes"

 private:
  using Numbers = std::vector<std::uint32_t>;
  using Value = std::variant<double, bool, std::string, Numbers>;
  std::map<std::string, Value, std::less<>> members_;
  std::vector<Note> notes_;
};

}  // namespace lanescope::server
