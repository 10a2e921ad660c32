// `lanescope diff` as text, as Markdown and as JSON.
#pragma once
#include <string>

#include "lanescope/explain/compare.h"

namespace lanescope::report {

struct DiffOptions {
  std::string a_label, b_label;  // names of the two traces: their paths
  std::size_t top = 10;          // rows of each table, and of each list in JSON
  bool markdown = false;
};

// Headline, remarks, then the wall in parts that add up, kernels, gaps, CPU time, copies and
// communication.
std::string diff_text(const explain::Comparison& comparison, const DiffOptions& options);

// docs/formats/json_output.md, command "diff".
std::string diff_json(const explain::Comparison& comparison, const DiffOptions& options);

// "operators", "calls", "waits", "ranges", "python".
const char* cpu_class_key(analysis::CpuClass cpu);

}  // namespace lanescope::report
