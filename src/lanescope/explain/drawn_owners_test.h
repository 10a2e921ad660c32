// The owners of a drawn program, for tests.
#pragma once
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/owner_mechanism.h"
#include "lanescope/explain/owners.h"
#include "lanescope/testing/program_sketch.h"

namespace lanescope::explain {

struct ExplainedOwners {
  explicit ExplainedOwners(testing::ProgramSketch& program)
      : trace(program.trace()), facts(*gather_facts(trace)) {}
  const Owners& owners() const { return *step_owners(facts); }
  const Owner& first() const { return owners().owners.at(0); }
  Mechanism mechanism() const { return mechanism_of(first()); }
  Trace trace;
  Facts facts;
};

// Texts inside a sentence, in order.
inline std::vector<std::string> names_in(const Sentence& sentence) {
  std::vector<std::string> found;
  for (const Value& value : sentence.values)
    if (value.kind == Value::Kind::kName) found.push_back(value.text);
  return found;
}

}  // namespace lanescope::explain
