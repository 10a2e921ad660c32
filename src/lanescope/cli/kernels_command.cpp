// `lanescope kernels`: what ran on the GPU, equal pieces together.
#include <limits>
#include <memory>

#include "lanescope/analysis/kernel_groups.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/text.h"
#include "lanescope/explain/facts.h"
#include "lanescope/record/range.h"
#include "lanescope/report/kernel_groups_text.h"

namespace lanescope::cli {
namespace {

struct KernelsFlags {
  std::string path;
  std::optional<std::int64_t> step, rows;
  bool json = false;
};

int run_kernels(const KernelsFlags& flags, Output& output) {
  int code = kOk;
  const std::optional<Trace> trace = open_trace(flags.path, output, &code);
  if (!trace) return code;
  RecordFunction stage("kernels");
  const Result<explain::Facts> facts = explain::gather_facts(*trace, flags.step);
  if (!facts) {
    output.complain("kernels: --step: " + message_of(facts.error()));
    return kUsage;
  }
  std::vector<analysis::KernelGroup> groups;
  if (facts->main_device)
    groups = analysis::compute_kernel_groups(*trace, facts->links, facts->device().timeline,
                                             facts->steady_windows);
  const auto rows = static_cast<std::size_t>(flags.rows.value_or(20));
  output.write(flags.json ? report::kernel_groups_json(*facts, groups)
                          : report::kernel_groups_text(*facts, groups, rows));
  return kOk;
}

}  // namespace

void add_kernels_command(CommandLine& line) {
  Command command = line.command(
      "kernels", "what ran on the GPU: equal kernels and copies together, with their spread");
  const auto flags = std::make_shared<KernelsFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                      "speak of this ProfilerStep only (default: of all but the first)");
  command.number_flag("--rows", &flags->rows, 1, 1'000'000, "rows of the table (default: 20)");
  command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  command.epilogue(R"(Examples:
  lanescope kernels trace.json.gz
  lanescope kernels trace.json.gz --step 12 --rows 100
  lanescope kernels trace.json.gz --json | python3 -m json.tool

Equal: the same name, grid and block, launched by operators with equal input shapes. MAD is the median distance from the
median: small when calls take the same time. All numbers: docs/definitions.md#kernel-groups.
)");
  command.runs([flags](Output& output) -> int { return run_kernels(*flags, output); });
}

}  // namespace lanescope::cli
