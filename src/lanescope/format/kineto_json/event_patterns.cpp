#include "lanescope/format/kineto_json/event_patterns.h"

namespace lanescope::format {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint32_t kFirstCredit = 512;
constexpr std::uint32_t kEventsBetweenTries = 4096;  // unknown events before learning again
constexpr std::size_t kMaxEventBytes = 16 * 1024;    // of an event to learn

}  // namespace

EventPatterns::EventPatterns() : credit_(kFirstCredit) { forget(); }

void EventPatterns::forget() {
  texts_.clear();
  edges_.assign(1, {});
  patterns_.assign(1, {});
  last_pattern_ = 0;
}

std::uint32_t EventPatterns::find_other(std::uint32_t from, const char* at, std::size_t left) {
  for (std::uint32_t i = edges_[from].first_child; i != kRoot; i = edges_[i].next_sibling) {
    if (!matches(edges_[i], at, left)) continue;
    edges_[from].last_taken = i;
    if (from == kRoot) patterns_[last_pattern_].next = i;
    return i;
  }
  return kRoot;
}

bool EventPatterns::wants_draft() {
  if (credit_ > 0) {
    --credit_;
    return true;
  }
  if (++waiting_ < kEventsBetweenTries) return false;
  waiting_ = 0;
  credit_ = kFirstCredit / 8;
  return true;
}

std::uint32_t EventPatterns::add(std::uint32_t from, std::string_view text, std::uint32_t tokens,
                                 const EventDraft::Value& value) {
  for (std::uint32_t i = edges_[from].first_child; i != kRoot; i = edges_[i].next_sibling)
    if (std::string_view(texts_).substr(edges_[i].text, edges_[i].size) == text) return i;
  Edge edge;
  edge.text = texts_.size();
  edge.size = static_cast<std::uint32_t>(text.size());
  edge.tokens = tokens;
  edge.slot = value.slot;
  edge.known = value.known;
  edge.key = value.key;
  edge.next_sibling = edges_[from].first_child;
  texts_.append(text).append(kWord, '\0');
  const auto index = static_cast<std::uint32_t>(edges_.size());
  edges_.push_back(edge);
  edges_[from].first_child = index;
  return index;
}

void EventPatterns::learn(const EventDraft& draft, std::string_view text, std::uint32_t begin,
                          std::uint32_t end, std::uint32_t first_token, std::uint32_t end_token) {
  if (!draft.usable || end - begin > kMaxEventBytes || draft.values.size() > kMaxArgs) return;
  const std::size_t edges = edges_.size() + draft.values.size() + 1;
  const std::size_t bytes = texts_.size() + (end - begin) + kWord * (draft.values.size() + 1);
  if (edges > kMaxEdges || bytes > kMaxTextBytes) forget();
  std::uint32_t at = kRoot, byte = begin, token = first_token;
  for (const EventDraft::Value& value : draft.values) {
    at = add(at, text.substr(byte, value.begin - byte), value.begin_token - token, value);
    byte = value.end;
    token = value.end_token;
  }
  const std::size_t before = edges_.size();
  at = add(at, text.substr(byte, end - byte), end_token - token,
           {ValueSlot::kEnd, ArgKey::kCount, kNone<StringId>, 0, 0, 0, 0});
  if (edges_.size() == before) return;
  edges_[at].pattern = static_cast<std::uint32_t>(patterns_.size());
  patterns_.push_back({draft.phase, draft.category, draft.scope, draft.bind});
}

}  // namespace lanescope::format
