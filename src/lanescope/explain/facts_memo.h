// What several rules compute from the same Facts: made by the first that asks, kept for the others.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>

#include "lanescope/explain/facts.h"

namespace lanescope::explain {

// Any thread. Those that ask for the same value wait for the one that makes it.
class FactsMemo {
 public:
  using Key = void (*)();
  using Made = std::shared_ptr<const void>;
  // What `make` gave when it was first called for this key. If it throws, the next one that asks makes the value.
  const void* get(Key key, const std::function<Made()>& make);

 private:
  struct Entry {
    std::mutex mutex;  // guards the value, and is held while it is made
    Made value;
  };
  std::mutex mutex_;              // guards entries_, not what they hold
  std::map<Key, Entry> entries_;  // an entry stays where it is
};

// make(facts), computed once for these Facts and their copies. It stays as long as they do. `make` may ask for others, not for itself.
//   const std::vector<HostStretch>& host_late_stretches(const Facts& facts) { return made_once<find_stretches>(facts); }
template <auto make>
const auto& made_once(const Facts& facts) {
  using MadeOnce = std::remove_cvref_t<decltype(make(facts))>;
  const void* const value = facts.memo->get(
      reinterpret_cast<FactsMemo::Key>(make),
      [&]() -> FactsMemo::Made { return std::make_shared<const MadeOnce>(make(facts)); });
  return *static_cast<const MadeOnce*>(value);
}

}  // namespace lanescope::explain
