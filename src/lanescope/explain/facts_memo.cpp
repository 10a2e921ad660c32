#include "lanescope/explain/facts_memo.h"

namespace lanescope::explain {

std::shared_ptr<FactsMemo> make_facts_memo() { return std::make_shared<FactsMemo>(); }

const void* FactsMemo::get(Key key, const std::function<Made()>& make) {
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    entry = &entries_[key];
  }
  // Not call_once: ThreadSanitizer waits forever for one that threw.
  const std::lock_guard lock(entry->mutex);
  if (!entry->value) entry->value = make();
  return entry->value.get();
}

}  // namespace lanescope::explain
