// Values by the numbers that a sequence of packets gives them ("iid"): nearly always 1, 2, 3, ...
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace lanescope::format {

// Small numbers lie in a list, because each event asks for several: a hash map took a tenth of the
// time of reading. Others lie in a map. Memory: at most 16 places, and 4 for each value.
template <typename T>
class ByIid {
 public:
  // Valid until the next change. nullptr: none has this number.
  const T* find(std::uint64_t iid) const {
    if (iid < near_.size() && near_[static_cast<std::size_t>(iid)])
      return &*near_[static_cast<std::size_t>(iid)];
    if (far_.empty()) return nullptr;
    const auto found = far_.find(iid);
    return found == far_.end() ? nullptr : &found->second;
  }
  void set(std::uint64_t iid, const T& value) {
    if (!find(iid)) ++count_;
    if (iid >= kPlaces + 4 * count_) {
      if (iid < near_.size()) near_[static_cast<std::size_t>(iid)].reset();
      far_[iid] = value;
      return;
    }
    far_.erase(iid);
    const auto place = static_cast<std::size_t>(iid);
    if (place >= near_.size()) near_.resize(place + 1);
    near_[place] = value;
  }
  void erase(std::uint64_t iid) {
    if (!find(iid)) return;
    --count_;
    if (iid < near_.size()) near_[static_cast<std::size_t>(iid)].reset();
    far_.erase(iid);
  }

 private:
  static constexpr std::uint64_t kPlaces = 16;

  std::vector<std::optional<T>> near_;
  std::unordered_map<std::uint64_t, T> far_;
  std::uint64_t count_ = 0;
};

}  // namespace lanescope::format
