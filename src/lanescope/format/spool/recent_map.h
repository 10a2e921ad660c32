// A map that remembers what was put in last and forgets the rest, so that it never grows beyond a
// bound however long a recording is.
#pragma once
#include <cstddef>
#include <unordered_map>
#include <utility>

namespace lanescope::format {

// Keeps at least the last `kAtLeast` keys that were put in, and less than twice as many. One
// thread.
template <typename Key, typename Value, typename Hash, std::size_t kAtLeast>
class RecentMap {
 public:
  void put(const Key& key, Value value) {
    if (newer_.size() == kAtLeast) {
      older_ = std::move(newer_);
      newer_ = {};
    }
    newer_.insert_or_assign(key, std::move(value));
  }
  // The value that was put in last; null when there is none, or none any more. Valid until put().
  const Value* find(const Key& key) const {
    if (const auto found = newer_.find(key); found != newer_.end()) return &found->second;
    const auto found = older_.find(key);
    return found == older_.end() ? nullptr : &found->second;
  }
  void erase(const Key& key) {
    newer_.erase(key);
    older_.erase(key);
  }

 private:
  std::unordered_map<Key, Value, Hash> newer_, older_;
};

}  // namespace lanescope::format
