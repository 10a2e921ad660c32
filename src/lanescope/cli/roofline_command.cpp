// `lanescope roofline`: how close each operator came to the peak of the GPU.
#include "lanescope/cli/step_report.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/report/roofline_text.h"

namespace lanescope::cli {
namespace {

const analysis::Roofline& roofline_of(const explain::Facts& facts) {
  static const analysis::Roofline none;
  return facts.main_device ? explain::kernel_facts(facts).roofline : none;
}
std::string roofline_text(const explain::Facts& facts, std::size_t rows) {
  return report::roofline_text(facts, roofline_of(facts), rows);
}
std::string roofline_json(const explain::Facts& facts, std::span<const SliceId> /*originals*/) {
  return report::roofline_json(facts, roofline_of(facts));
}

}  // namespace

void add_roofline_command(CommandLine& line) {
  add_step_report(
      line, {"roofline", "how close each operator comes to the GPU's peak, and what limits it",
             R"(Examples:
  lanescope roofline trace.json.gz
  lanescope roofline trace.json.gz --step 12 --rows 50
  lanescope roofline trace.json.gz --json | python3 -m json.tool

The trace needs input shapes: record with record_shapes=True. For a trace with hardware lanes (record --hardware), more
columns show what the GPU's counters measured, next to the model from shapes. The numbers are defined in
docs/definitions/kernels.md#roofline and docs/definitions/hardware.md#use-of-an-operator.
)",
             roofline_text, roofline_json});
}

}  // namespace lanescope::cli
