// A map that keeps only the newest entries, so that its size is limited for any recording.
#pragma once
#include <cstddef>
#include <unordered_map>
#include <utility>

namespace lanescope::format {

// Keeps at least the last `kAtLeast` keys, and less than twice as many. One thread.
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
  // The newest value of the key; null: none, or forgotten. Valid until put().
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
