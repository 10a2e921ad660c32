// `lanescope diff`: why a step of one trace takes longer than a step of another.
#include <fmt/format.h>

#include <limits>
#include <memory>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/explain/compare.h"
#include "lanescope/record/range.h"
#include "lanescope/report/diff_text.h"

namespace lanescope::cli {
namespace {

constexpr std::int64_t kMostDiffRows = 1'000'000'000;

struct DiffFlags {
  std::string a, b;
  std::optional<std::int64_t> step, top;
  bool json = false, markdown = false;
};

int run_diff(const DiffFlags& flags, Output& output) {
  if (flags.a == "-" && flags.b == "-") {
    output.complain("diff: expected two traces, found standard input named twice");
    return kUsage;
  }
  int code = kOk;
  const std::optional<Trace> a = open_trace(flags.a, output, &code);
  if (!a) return code;
  const std::optional<Trace> b = open_trace(flags.b, output, &code);
  if (!b) return code;

  const analysis::StepOptions steps{.step = flags.step, .count_long_step = true};
  RecordFunction stage("diff: facts");
  const Result<explain::Facts> a_facts = explain::gather_facts(*a, steps);
  const Result<explain::Facts> b_facts = explain::gather_facts(*b, steps);
  stage.end();
  for (const auto& [facts, path] : {std::pair(&a_facts, &flags.a), std::pair(&b_facts, &flags.b)}) {
    if (*facts) continue;
    output.complain(fmt::format("diff: {}: {}", *path, facts_message_of(facts->error())));
    return kUsage;
  }
  RecordFunction compare_stage("diff: compare");
  const explain::Comparison comparison = explain::compare(*a_facts, *b_facts);
  compare_stage.end();
  RecordFunction text_stage("diff: text");
  report::DiffOptions options{flags.a, flags.b, 10, flags.markdown};
  options.top = static_cast<std::size_t>(flags.top.value_or(flags.json ? kMostDiffRows : 10));
  output.write(flags.json ? report::diff_json(comparison, options)
                          : report::diff_text(comparison, options));
  return kOk;
}

}  // namespace

void add_diff_command(CommandLine& line) {
  Command command =
      line.command("diff", "what changed between two traces: the step's time in parts that add up");
  const auto flags = std::make_shared<DiffFlags>();
  command.argument("A", &flags->a, "the trace to compare with: before the change",
                   {Completes::kFile});
  command.argument("B", &flags->b, "the trace to explain: after the change; - reads standard input",
                   {Completes::kFile});
  command.number_flag("--step", &flags->step, 0, std::numeric_limits<std::int64_t>::max(),
                      "compare this ProfilerStep of both (default: the mean of all but the first)");
  command.number_flag("--top", &flags->top, 0, kMostDiffRows,
                      "rows of each table (default 10; with --json all)");
  const Option json =
      command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  const Option markdown = command.switch_flag("--md", &flags->markdown, "Markdown");
  json.excludes(markdown);
  command.epilogue(R"(Examples:
  lanescope diff before.json.gz after.json.gz                what made the step slower or faster
  lanescope diff eager.json compiled.json --top 30           what compile fused, kernel by kernel
  lanescope diff rank0.json.gz rank3.json.gz --step 12       one step of two ranks

How the difference is split: docs/definitions/comparing.md.
)");
  command.runs([flags](Output& output) -> int { return run_diff(*flags, output); });
}

}  // namespace lanescope::cli
