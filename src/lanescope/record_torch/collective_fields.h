// What torch knows about a collective when its record_param_comms range begins.
//
// torch keeps it in thread-local debug information, and one function gives torch.profiler JSON
// texts of it. We call the same function, so names and values are as in torch, in every version. It
// allocates (a map of about 15 texts, some microseconds), but only for collectives.
#pragma once
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/util.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lanescope/codec/op_details.h"

namespace lanescope::record_torch {

template <typename Function>
bool is_collective(const Function& fn) {
  if constexpr (requires { fn.isNcclMeta(); })
    return fn.isNcclMeta();
  else
    return std::strcmp(fn.name(), "record_param_comms") == 0;
}

// The older form of the function has other parameters, all with defaults. A torch without the
// function gives no fields.
template <typename Function>
std::unordered_map<std::string, std::string> collective_fields(const Function& fn) {
  using namespace torch::profiler::impl;  // NOLINT: the name must be looked up when instantiated
  if constexpr (requires { saveNcclMeta(fn); }) {
    // Without the information there is nothing to read, and torch would log a warning.
    if (c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PARAM_COMMS_INFO))
      return saveNcclMeta(fn);
  }
  return {};
}

template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

// torch's texts are a number or anything in quotation marks, which it does not escape.
inline void encode_collective_value(std::string_view text, codec::OpDetailsWriter& out) {
  if (const auto number = whole_number<std::int64_t>(text)) return out.integer(*number);
  if (const auto number = whole_number<std::uint64_t>(text)) return out.unsigned_integer(*number);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  out.string(text);
}

// The number of a collective, from its inputs: (number, is it point to point). torch before 2.13
// has it nowhere else. Inputs exist only if they are recorded.
template <typename Inputs>
std::optional<std::int64_t> sequence_among(const Inputs& inputs) {
  for (const auto& input : inputs) {
    if (!input.isTuple()) continue;
    const auto& pair = input.toTupleRef().elements();
    if (pair.size() == 2 && pair[0].isInt() && pair[1].isBool()) return pair[0].toInt();
  }
  return std::nullopt;
}

// What changes with each call of a collective: as part of the detail, it would make
// each detail new.
struct CollectiveCall {
  std::optional<std::int64_t> seq;
  std::optional<std::uint64_t> comms_id;
};

// Writes all other fields as keywords, in the order of their names; after
// OpDetailsWriter::keywords().
template <typename Function>
CollectiveCall encode_collective(const Function& fn, codec::OpDetailsWriter& out) {
  const auto fields = collective_fields(fn);
  CollectiveCall call;
  for (const auto& [key, text] : std::map(fields.begin(), fields.end())) {
    if (key == "Seq" && (call.seq = whole_number<std::int64_t>(text))) continue;
    if (key == "Comms Id" && (call.comms_id = whole_number<std::uint64_t>(text))) continue;
    out.key(key);
    encode_collective_value(text, out);
  }
  return call;
}

}  // namespace lanescope::record_torch
