#include "lanescope/explain/facts_memo.h"

namespace lanescope::explain {

std::shared_ptr<FactsMemo> make_facts_memo() { return std::make_shared<FactsMemo>(); }

const void* FactsMemo::get(Key key, const std::function<Made()>& make) {
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    entry = &entries_[key];
  }
  std::call_once(entry->once, [&] { entry->value = make(); });
  return entry->value.get();
}

}  // namespace lanescope::explain
