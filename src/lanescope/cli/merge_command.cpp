// `lanescope merge`: merges the traces of a job's ranks into one, with clocks aligned.
#include <fmt/format.h>

#include <memory>

#include "lanescope/base/usable_cores.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/format/formats.h"
#include "lanescope/format/index_file/index_place.h"
#include "lanescope/format/index_file/kept_texts.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/ranks/merge_traces.h"
#include "lanescope/ranks/rank_files.h"
#include "lanescope/ranks/read_ranks.h"
#include "lanescope/ranks/summary_text.h"
#include "lanescope/record/range.h"

namespace lanescope::cli {
namespace {

struct MergeFlags {
  std::vector<std::string> paths;
  std::string output_path;
  bool force = false;
};

int wrong_use(Output& output, const std::string& message) {
  output.complain("merge: " + message);
  return kUsage;
}

Result<Trace> read_rank_trace(const std::string& path, format::OtherFiles& others) {
  format::ReadOptions options;
  options.threads = 1;  // every worker reads a file of its own
  others.look_next_to(path);
  return format::open_indexed(path, options, format::IndexUse::kRead);
}

int run_merge(const MergeFlags& flags, Output& output) {
  if (flags.paths.empty() || flags.output_path.empty())
    return wrong_use(output,
                     "expected the traces of a job's ranks and -o FILE; see lanescope merge "
                     "--help");
  if (const auto target = check_target(flags.output_path, flags.force); !target)
    return wrong_use(output, "-o: " + message_of(target.error()));
  if (const auto writable = format::check_written_ending(flags.output_path); !writable)
    return wrong_use(output, "-o: " + message_of(writable.error()));
  auto files = ranks::find_rank_files(flags.paths, format::format_endings());
  if (!files) return wrong_use(output, message_of(files.error()));
  RecordFunction stage("merge: clocks");
  ranks::ReadRanksOptions options;
  options.workers = usable_cores();
  format::OtherFiles others;
  const auto read = [&others](const std::string& path) { return read_rank_trace(path, others); };
  options.read_trace = read;
  options.keep_summaries = format::keep_texts({"ranks", ranks::summary_version()});
  const auto job = ranks::build_job(ranks::read_rank_files(*files, options));
  stage.end();
  if (!job) return wrong_use(output, message_of(job.error()));
  for (const ranks::Remark& remark : job->remarks) output.complain("merge: " + remark.text);
  RecordFunction merge_stage("merge: rows");
  const auto merged = ranks::merge_traces(*job, read);
  merge_stage.end();
  complain_of_others(others, output);
  if (!merged) return wrong_use(output, message_of(merged.error()));
  if (merged->unaligned > 0)
    output.complain(
        fmt::format("merge: the clocks of {} of {} ranks are unknown: they keep their "
                    "own",
                    merged->unaligned, job->ranks.size()));
  return save_trace(merged->trace, flags.output_path, output);
}

}  // namespace

void add_merge_command(CommandLine& line) {
  Command command =
      line.command("merge", "merge the traces of a job's ranks into one, with clocks aligned");
  const auto flags = std::make_shared<MergeFlags>();
  command.arguments("PATHS", &flags->paths,
                    "a folder with the traces of a job's ranks, a pattern in quotes, or the files");
  command.text_flag("-o,--output", &flags->output_path, "FILE",
                    "where to write: .json, .json.gz or .json.zst", {Completes::kFile});
  command.switch_flag("--force", &flags->force, "overwrite an existing file");
  command.epilogue(R"(Examples:
  lanescope merge traces/ -o merged.json.gz                   then open it in Perfetto, or with lanescope view
  lanescope merge rank0.json.gz rank3.json.gz -o two.json

Arrows lead from the last rank that arrives at a collective to the ranks that wait for it. How clocks are aligned:
docs/definitions/ranks.md#clock-offset.
)");
  command.runs([flags](Output& output) -> int { return run_merge(*flags, output); });
}

}  // namespace lanescope::cli
