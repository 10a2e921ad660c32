// `lanescope kernels`: what ran on the GPU, with equal pieces in one row.
#include "lanescope/analysis/hardware_use.h"
#include "lanescope/analysis/kernel_groups.h"
#include "lanescope/cli/step_report.h"
#include "lanescope/report/kernel_groups_text.h"

namespace lanescope::cli {
namespace {

std::vector<analysis::KernelGroup> groups_of(const explain::Facts& facts) {
  if (!facts.main_device) return {};
  return analysis::compute_kernel_groups(*facts.trace, facts.links, facts.device().timeline,
                                         facts.steady_windows);
}
std::vector<analysis::HardwareUse> uses_of(const explain::Facts& facts,
                                           const std::vector<analysis::KernelGroup>& groups) {
  if (!facts.main_device) return {};
  return analysis::measure_kernel_groups(*facts.trace, facts.links, facts.device().timeline,
                                         groups);
}
std::string kernels_text(const explain::Facts& facts, std::size_t rows) {
  const auto groups = groups_of(facts);
  return report::kernel_groups_text(facts, groups, uses_of(facts, groups), rows);
}
std::string kernels_json(const explain::Facts& facts, std::span<const SliceId> originals) {
  const auto groups = groups_of(facts);
  return report::kernel_groups_json(facts, groups, uses_of(facts, groups), originals);
}

}  // namespace

void add_kernels_command(CommandLine& line) {
  add_step_report(
      line, {"kernels",
             "what ran on the GPU: equal kernels and copies in one row, and how their times differ",
             R"(Examples:
  lanescope kernels trace.json.gz
  lanescope kernels trace.json.gz --step 12 --rows 100
  lanescope kernels trace.json.gz --json | python3 -m json.tool

Equal: the same name, grid and block, launched by operators with equal input shapes. MAD is the median distance from the
median: small when calls take the same time. Definitions: docs/definitions/kernels.md#kernel-groups.

A trace with hardware lanes (record --hardware) has more columns, measured while the kernels ran: how active the SMs and
tensor cores were, the SMs' clock, how fast memory was read and written, and how many samples these come from. With fewer
than 5 samples they show -. Definitions: docs/definitions/hardware.md.
)",
             kernels_text, kernels_json});
}

}  // namespace lanescope::cli
