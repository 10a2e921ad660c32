// One diagnosis: an id, the question it answers, and a function that finds it, stays quiet, or says
// what it would need.
#pragma once
#include <string>
#include <variant>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain {

struct Quiet {};  // looked, and it is not so
struct NotChecked {
  std::string missing;  // what the trace lacks, and how to record it
};
using Outcome = std::variant<Quiet, Finding, NotChecked>;

struct Rule {
  const char* id;        // "host-sync": --question takes it, docs/rules/<id>.md explains it
  const char* question;  // "does the program wait for the GPU in the middle of a step?"
  Outcome (*run)(const Facts& facts);
  bool on_request = false;  // true of nearly every trace: told only to who asks
};

}  // namespace lanescope::explain
