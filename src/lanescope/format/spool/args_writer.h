// Arguments of an event, written one after the other.
#pragma once
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// Builds a list of arguments; interns keys once.
class ArgsWriter {
 public:
  explicit ArgsWriter(TraceBuilder& builder) : builder_(builder) {}
  void begin() { builder_.args().begin(); }
  ArgsId end() { return builder_.args().end(); }
  void integer(const char* key, std::int64_t value) {
    const Key& k = key_of(key);
    builder_.args().add_int(k.text, k.known, value);
  }
  void unsigned_integer(const char* key, std::uint64_t value) {
    const Key& k = key_of(key);
    builder_.args().add_uint(k.text, k.known, value);
  }
  void real(const char* key, double value) {
    const Key& k = key_of(key);
    builder_.args().add_double(k.text, k.known, value);
  }
  void text(const char* key, std::string_view value) {
    const Key& k = key_of(key);
    builder_.args().add_string(k.text, k.known, builder_.intern(value));
  }
  void text(const char* key, StringId value) {
    const Key& k = key_of(key);
    builder_.args().add_string(k.text, k.known, value);
  }
  void json(const char* key, StringId value) {
    const Key& k = key_of(key);
    builder_.args().add_json(k.text, k.known, value);
  }
  void is_true(const char* key) {
    const Key& k = key_of(key);
    builder_.args().add(k.text, k.known, ArgType::kTrue);
  }

 private:
  struct Key {
    StringId text{};
    ArgKey known{};
  };
  // Keys are literals, known by their address: a few of them may be interned twice.
  const Key& key_of(const char* key) {
    const auto [known, is_new] = keys_.try_emplace(key);
    if (is_new) known->second = {builder_.intern(key), arg_key(key)};
    return known->second;
  }
  TraceBuilder& builder_;
  std::unordered_map<const char*, Key> keys_;
};

}  // namespace lanescope::format
