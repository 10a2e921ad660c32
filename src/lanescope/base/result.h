// A value, or the reason why there is none. Everything that can fail because of the outside
// world returns this.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "lanescope/base/check.h"

namespace lanescope {

// A short, closed list, so that callers can decide on it; the message is for people.
enum class Errc : std::uint8_t {
  kIo,               // the operating system refused: open, read, write, map
  kCorruptInput,     // the bytes are not what their format promises
  kUnsupported,      // a known format or feature that lanescope does not read
  kInvalidArgument,  // the caller asked for something that makes no sense
  kLimit,            // a size from a file or a flag is over a documented limit
  kUnavailable,      // a library, device or permission is missing
};

const char* errc_name(Errc code);  // "io", "corrupt-input", ...; static storage

// Message: what was expected, what was found, what to do. No trailing newline.
struct Error {
  Errc code = Errc::kIo;
  std::string message;
  // bytes into the (unpacked) input, where known
  std::optional<std::uint64_t> offset = std::nullopt;
};

// Member names follow std::expected<T, Error>, which gcc 12 lacks. Not thread-safe, like any value.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & {
    LANESCOPE_CHECK(has_value());
    return std::get<0>(state_);
  }
  const T& value() const& {
    LANESCOPE_CHECK(has_value());
    return std::get<0>(state_);
  }
  T&& value() && {
    LANESCOPE_CHECK(has_value());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() {
    LANESCOPE_CHECK(!has_value());
    return std::get<1>(state_);
  }
  const Error& error() const {
    LANESCOPE_CHECK(!has_value());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT
  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  void value() const { LANESCOPE_CHECK(has_value()); }
  Error& error() {
    LANESCOPE_CHECK(!has_value());
    return *error_;
  }
  const Error& error() const {
    LANESCOPE_CHECK(!has_value());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace lanescope

#define LANESCOPE_CONCAT_INNER(a, b) a##b
#define LANESCOPE_CONCAT(a, b) LANESCOPE_CONCAT_INNER(a, b)
// LANESCOPE_TRY(auto trace, read_trace(path)); declares `trace`, or returns the error
// to the caller.
#define LANESCOPE_TRY(declaration, expression)                               \
  auto LANESCOPE_CONCAT(lanescope_result_, __LINE__) = (expression);         \
  if (!LANESCOPE_CONCAT(lanescope_result_, __LINE__))                        \
    return std::move(LANESCOPE_CONCAT(lanescope_result_, __LINE__)).error(); \
  declaration = *std::move(LANESCOPE_CONCAT(lanescope_result_, __LINE__))
// The same for Result<void>.
#define LANESCOPE_TRY_VOID(expression)                                   \
  if (auto lanescope_void_result = (expression); !lanescope_void_result) \
  return std::move(lanescope_void_result).error()
