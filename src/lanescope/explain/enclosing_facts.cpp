#include "lanescope/explain/enclosing_facts.h"

#include "lanescope/explain/python_frames.h"

namespace lanescope::explain {

std::shared_ptr<EnclosingSlot> make_enclosing_slot() { return std::make_shared<EnclosingSlot>(); }

const analysis::SliceNesting& nesting_with_frames(const Facts& facts) {
  if (!has_python_frames(*facts.trace)) return facts.nesting;
  EnclosingSlot& slot = *facts.enclosing;
  std::call_once(slot.nesting_once, [&] {
    slot.nesting = analysis::compute_slice_nesting(
        *facts.trace, {.python_frames = true, .threads = facts.threads});
  });
  return slot.nesting;
}

const std::vector<analysis::Phase>& training_phases(const Facts& facts) {
  EnclosingSlot& slot = *facts.enclosing;
  std::call_once(slot.phases_once, [&] {
    slot.phases =
        analysis::compute_training_phases(*facts.trace, facts.links, nesting_with_frames(facts));
  });
  return slot.phases;
}

const analysis::CompiledCode& compiled_code(const Facts& facts) {
  EnclosingSlot& slot = *facts.enclosing;
  std::call_once(slot.compiled_once, [&] {
    slot.compiled = analysis::find_compiled_code(*facts.trace, nesting_with_frames(facts));
  });
  return slot.compiled;
}

}  // namespace lanescope::explain
