// `lanescope tree`: which operator launched which kernel, and when.
#include <limits>
#include <memory>

#include "lanescope/analysis/dispatch_tree.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/record/range.h"
#include "lanescope/report/dispatch_tree_text.h"

namespace lanescope::cli {
namespace {

// columns without a terminal: keeps names whole for grep
constexpr int kWholeNames = 100'000;

struct TreeFlags {
  PartFlags part;
  std::string path, op;
  std::optional<std::int64_t> step, depth, row_limit;
  bool stacks = false, json = false;
};

int run_tree(const TreeFlags& flags, Output& output) {
  int code = kOk;
  const std::optional<OpenedStep> opened =
      open_step(flags.path, flags.part, flags.step, "tree", output, &code);
  if (!opened) return code;
  analysis::DispatchTreeOptions options;
  options.step = flags.step;
  options.op = flags.op;
  options.python_frames = flags.stacks;
  if (flags.depth) options.max_depth = static_cast<int>(*flags.depth);
  RecordFunction stage("dispatch tree");
  Result<analysis::DispatchTree> tree = analysis::compute_dispatch_tree(opened->trace(), options);
  if (!tree && opened->part)  // an operator that other steps have
    tree = analysis::compute_dispatch_tree(opened->whole, options);
  if (tree && opened->part) {
    tree->steps.clear();
    for (const view::StepWindow& step : opened->steps) tree->steps.push_back(step.number);
  }
  if (!tree) {
    output.complain("tree: " + message_of(tree.error()));
    return kUsage;
  }
  if (flags.json) {
    output.write(report::dispatch_tree_json(*tree));
    return kOk;
  }
  report::TreeTextOptions text;
  text.width = output.terminal_width() > 0 ? output.terminal_width() : kWholeNames;
  if (flags.row_limit) text.max_rows = static_cast<int>(*flags.row_limit);
  text.color = output.takes_colour();
  output.write_styled(report::dispatch_tree_text(*tree, text));
  return kOk;
}

}  // namespace

void add_tree_command(CommandLine& line) {
  Command command =
      line.command("tree", "which operator launched which kernel, and when: the dispatch chain");
  const auto flags = std::make_shared<TreeFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  const Option step = command.number_flag(
      "--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(), "only ProfilerStep#N");
  add_window_flag(command, &flags->part, step);
  command.text_flag("--op", &flags->op, "NAME",
                    "only below operators or annotations of this name, such as aten::mm");
  command.number_flag("--depth", &flags->depth, 1, 256, "levels shown (default 64)");
  command.number_flag("--row-limit", &flags->row_limit, -1, 1'000'000'000,
                      "lines shown; -1: all (default 400)");
  command.switch_flag("--stacks", &flags->stacks,
                      "show Python frames, where the trace has them (with_stack)");
  command.switch_flag("--json", &flags->json, "JSON, whole: docs/formats/json_output.md");
  command.epilogue(R"(Examples:
  lanescope tree trace.json.gz                       every thread and step; what repeats is folded (x3)
  lanescope tree trace.json.gz --step 3              one step
  lanescope tree trace.json.gz --op aten::matmul     what became of each matmul

A line shows start, total, self and device time, the gap before it, then the name; a kernel is under the call that
launched it. Each number is defined in docs/definitions/dispatch_tree.md.
)");
  command.runs([flags](Output& output) -> int { return run_tree(*flags, output); });
}

}  // namespace lanescope::cli
