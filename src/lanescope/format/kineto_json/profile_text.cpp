// The text is strict JSON: a value that is of another type than expected is skipped and counted.
#include "lanescope/format/kineto_json/profile_text.h"

#include <algorithm>
#include <charconv>

#include "lanescope/base/json_escape.h"
#include "lanescope/codec/decimal.h"
#include "lanescope/format/kineto_json/json_walk.h"
#include "lanescope/format/kineto_json/value_reader.h"
#include "lanescope/model/time_limits.h"

namespace lanescope::format {
namespace {

void skip_value(JsonWalk& walk) {
  std::string_view ignored;
  if (walk.peek() == '{' || walk.peek() == '[')
    walk.take_nested(ignored);
  else if (!walk.ended())
    walk.take_token();
}

// Calls `each(key)` with the walk at the value, which it takes. False: not an object, skipped.
template <typename Each>
bool each_entry(JsonWalk& walk, const Each& each) {
  if (!walk.take('{')) {
    skip_value(walk);
    return false;
  }
  while (!walk.ended() && !walk.take('}')) {
    std::string_view key;
    if (!walk.take_string(key)) return false;
    walk.take(':');
    each(key);
    walk.take(',');
  }
  return true;
}

// Calls `each()` with the walk at an item, which it takes. False: not a list, skipped.
template <typename Each>
bool each_item(JsonWalk& walk, const Each& each) {
  if (!walk.take('[')) {
    skip_value(walk);
    return false;
  }
  while (!walk.ended() && !walk.take(']')) {
    each();
    walk.take(',');
  }
  return true;
}

// A whole number of the type; nothing: another value, skipped.
template <typename Number>
std::optional<Number> read_whole(JsonWalk& walk) {
  if (walk.peek() == '{' || walk.peek() == '[') {
    skip_value(walk);
    return std::nullopt;
  }
  if (walk.ended()) return std::nullopt;
  const std::string_view token = walk.take_token();
  Number value{};
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return value;
}

// Microseconds as nanoseconds; nothing: another value, or a time that no clock gives.
std::optional<std::int64_t> read_microseconds(JsonWalk& walk) {
  if (walk.peek() == '{' || walk.peek() == '[') {
    skip_value(walk);
    return std::nullopt;
  }
  if (walk.ended()) return std::nullopt;
  const codec::Decimal time = codec::parse_decimal(walk.take_token(), 3);
  if (time.status != codec::DecimalStatus::kOk || !is_possible_time(time.value))
    return std::nullopt;
  return time.value;
}

}  // namespace

void ProfileTextReader::read(std::string_view json, std::int64_t time_ns, ProfileParts& parts) {
  text_.assign(json);
  text_.resize(json.size() + codec::kJsonPadding);
  if (!index_.build(text_.data(), json.size())) {
    ++parts.lost;
    return;
  }
  parts.text_bytes += json.size();
  const std::size_t begin = parts.samples.size();
  JsonWalk walk(std::string_view(text_).substr(0, json.size()), index_.tokens());
  read_object(walk, parts, false);
  // Samples without a time, and times without a sample, say nothing.
  const std::size_t samples = parts.samples.size(), times = parts.deltas_ns.size();
  const std::size_t end = std::min(samples, times);
  parts.lost += std::max(samples, times) - end;
  parts.samples.resize(end);
  parts.deltas_ns.resize(end);
  if (end > begin) parts.chunks.push_back({time_ns, begin, end});
}

void ProfileTextReader::read_object(JsonWalk& walk, ProfileParts& parts, bool is_inner) {
  const auto time = [&](std::optional<std::int64_t>& place) {
    const auto value = read_microseconds(walk);
    if (!value) ++parts.lost;
    if (!place) place = value;
  };
  const bool is_object = each_entry(walk, [&](std::string_view key) {
    if (key == "cpuProfile" && !is_inner) return read_object(walk, parts, true);
    if (key == "nodes") return read_nodes(walk, parts);
    if (key == "startTime") return time(parts.start_ns);
    if (key == "endTime") return time(parts.end_ns);
    if (key == "samples") {
      const bool is_list = each_item(walk, [&] {
        const auto id = read_whole<std::uint32_t>(walk);
        parts.samples.push_back(id.value_or(ProfileNode::kNoParent));
      });
      if (!is_list) ++parts.lost;
      return;
    }
    if (key == "timeDeltas") {
      // A bad one makes all later times unknown: an impossible time ends the samples there.
      const bool is_list = each_item(walk, [&] {
        parts.deltas_ns.push_back(read_microseconds(walk).value_or(kMaxTimeNs + 1));
      });
      if (!is_list) ++parts.lost;
      return;
    }
    skip_value(walk);
  });
  if (!is_object) ++parts.lost;
}

void ProfileTextReader::read_nodes(JsonWalk& walk, ProfileParts& parts) {
  const bool is_list = each_item(walk, [&] {
    if (!read_node(walk, parts)) ++parts.lost;
  });
  if (!is_list) ++parts.lost;
}

bool ProfileTextReader::read_node(JsonWalk& walk, ProfileParts& parts) {
  ProfileNode node;
  std::optional<std::uint32_t> id;
  std::vector<std::uint32_t> children;
  bool is_whole = true;
  const bool is_object = each_entry(walk, [&](std::string_view key) {
    if (key == "id") {
      id = read_whole<std::uint32_t>(walk);
    } else if (key == "parent") {
      const auto parent = read_whole<std::uint32_t>(walk);
      is_whole = is_whole && parent;
      node.parent = parent.value_or(ProfileNode::kNoParent);
    } else if (key == "children") {
      is_whole = read_children(walk, children) && is_whole;
    } else if (key == "callFrame") {
      is_whole = read_frame(walk, node) && is_whole;
    } else {
      skip_value(walk);
    }
  });
  if (!is_object || !id || *id == ProfileNode::kNoParent) return false;
  node.id = *id;
  parts.nodes.push_back(node);
  for (const std::uint32_t child : children) parts.links.push_back({node.id, child});
  return is_whole;
}

bool ProfileTextReader::read_frame(JsonWalk& walk, ProfileNode& node) {
  return each_entry(walk, [&](std::string_view key) {
    if (key == "functionName")
      node.function = read_text(walk);
    else if (key == "url")
      node.url = read_text(walk);
    else if (key == "codeType")
      node.code_type = read_text(walk);
    else if (key == "lineNumber")
      node.line = std::max(read_whole<std::int32_t>(walk).value_or(-1), -1);
    else if (key == "columnNumber")
      node.column = std::max(read_whole<std::int32_t>(walk).value_or(-1), -1);
    else
      skip_value(walk);
  });
}

bool ProfileTextReader::read_children(JsonWalk& walk, std::vector<std::uint32_t>& children) {
  bool are_ids = true;
  const bool is_list = each_item(walk, [&] {
    if (const auto child = read_whole<std::uint32_t>(walk))
      children.push_back(*child);
    else
      are_ids = false;
  });
  return is_list && are_ids;
}

// kNone: another value, or an empty text.
StringId ProfileTextReader::read_text(JsonWalk& walk) {
  std::string_view raw;
  if (walk.peek() != '"') {
    skip_value(walk);
    return kNone<StringId>;
  }
  if (!walk.take_string(raw) || raw.empty()) return kNone<StringId>;
  if (!has_escape(raw)) return builder_.intern(raw);
  return unescape_json(raw, scratch_, EscapePolicy::kLenient) ? builder_.intern(scratch_)
                                                              : kNone<StringId>;
}

}  // namespace lanescope::format
