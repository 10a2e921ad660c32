// `lanescope ranks`: what holds a distributed job up, from the traces of its ranks.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/base/usable_cores.h"
#include "lanescope/cli/budget_file.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/progress.h"
#include "lanescope/cli/ranks_report.h"
#include "lanescope/cli/ranks_tasks.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/format/formats.h"
#include "lanescope/format/index_file/index_place.h"
#include "lanescope/format/index_file/kept_texts.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/ranks/job.h"
#include "lanescope/ranks/part_file.h"
#include "lanescope/ranks/rank_files.h"
#include "lanescope/ranks/read_ranks.h"
#include "lanescope/ranks/summary_text.h"
#include "lanescope/record/range.h"

namespace lanescope::cli {
namespace {

struct RanksFlags {
  std::vector<std::string> paths;
  std::string shard;
  std::optional<std::int64_t> jobs;
  RanksTaskFlags task;
  RanksReport report;
};

struct Shard {
  std::size_t index = 0, count = 1;
};

// "0/4" to "3/4".
std::optional<Shard> parse_shard(const std::string& text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ec != std::errc() || index.ptr == end || *index.ptr != '/') return std::nullopt;
  const auto count = std::from_chars(index.ptr + 1, end, shard.count);
  if (count.ec != std::errc() || count.ptr != end || shard.index >= shard.count)
    return std::nullopt;
  return shard;
}

int ranks_usage(Output& output, const std::string& message) {
  output.complain("ranks: " + message);
  return kUsage;
}

std::vector<ranks::RankFile> read_files(const std::vector<std::string>& files,
                                        const RanksFlags& flags, Output& output) {
  RecordFunction stage("ranks: read");
  std::optional<ProgressLine> line(std::in_place, output, "reading traces", ProgressUnit::kEvents);
  ranks::ReadRanksOptions options;
  const std::size_t cores = usable_cores();
  options.workers = flags.jobs ? static_cast<std::size_t>(*flags.jobs) : cores;
  format::OtherFiles others;
  options.read_trace = [&others](const std::string& path) {
    others.look_next_to(path);
    format::ReadOptions reading;
    reading.threads = 1;  // every worker reads a file of its own
    return format::open_indexed(path, reading, format::IndexUse::kRead);
  };
  options.keep_summaries = format::keep_texts({"ranks", ranks::summary_version()});
  options.progress = [&](std::size_t done, std::size_t total) { line->update(done, total); };
  std::vector<ranks::RankFile> read = ranks::read_rank_files(files, options);
  line.reset();
  complain_of_others(others, output);
  return read;
}

// The job of these paths, or the exit code after one line.
std::optional<ranks::Job> read_job(const std::vector<std::string>& paths, const RanksFlags& flags,
                                   Output& output, int* code) {
  *code = kUsage;
  auto files = ranks::find_rank_files(paths, format::format_endings());
  if (!files) {
    ranks_usage(output, message_of(files.error()));
    return std::nullopt;
  }
  auto read = read_files(*files, flags, output);
  RecordFunction stage("ranks: job");
  Result<ranks::Job> job = ranks::build_job(std::move(read));
  if (!job) {
    ranks_usage(output, message_of(job.error()));
    return std::nullopt;
  }
  *code = kOk;
  return *std::move(job);
}

int write_shard(const Shard& shard, const RanksFlags& flags, Output& output) {
  const auto files = ranks::find_rank_files(flags.paths, format::format_endings());
  if (!files) return ranks_usage(output, message_of(files.error()));
  const auto read = read_files(ranks::shard_of(*files, shard.index, shard.count), flags, output);
  return save_text(ranks::write_part(read), flags.report.output_path, output);
}

int run_task(RanksTask task, const std::vector<std::string>& paths, const RanksFlags& flags,
             Output& output) {
  if (task == RanksTask::kHang) return print_ranks_hang(paths, flags.report, output);
  ranks::JobBudget budget;
  if (task == RanksTask::kCheck) {  // before a long read
    auto read = read_job_budget(flags.task.budget);
    if (!read) {
      output.complain("ranks: --budget: " + message_of(read.error()));
      return read.error().code == Errc::kUnavailable ? kFailed : kUsage;
    }
    budget = *std::move(read);
  }
  int code = kOk;
  const bool is_diff = task == RanksTask::kDiff;
  const auto first = is_diff ? std::vector<std::string>{paths.front()} : paths;
  const std::optional<ranks::Job> job = read_job(first, flags, output, &code);
  if (!job) return code;
  if (is_diff) {
    const std::optional<ranks::Job> other = read_job({paths.back()}, flags, output, &code);
    return other ? print_ranks_diff(*job, *other, paths.front(), paths.back(), flags.report, output)
                 : code;
  }
  if (task == RanksTask::kTable) return print_ranks_table(*job, flags.task, flags.report, output);
  if (task == RanksTask::kCheck)
    return print_ranks_check(*job, paths.front(), budget, flags.task.budget, flags.report, output);
  return print_job(*job, flags.report, output);
}

int run_ranks(const RanksFlags& flags, Output& output) {
  std::vector<std::string> paths = flags.paths;
  const RanksTask task = paths.empty() ? RanksTask::kReport : ranks_task(paths.front());
  if (task != RanksTask::kReport) paths.erase(paths.begin());
  if (paths.empty())
    return ranks_usage(output,
                       "expected a folder, a pattern or files of a job's ranks, found nothing; "
                       "see lanescope ranks --help");
  const auto shard = flags.shard.empty() ? std::optional<Shard>(Shard{}) : parse_shard(flags.shard);
  if (!shard)
    return ranks_usage(output,
                       fmt::format("--shard expects I/N with I from 0 to N - 1, such as 0/4; "
                                   "found '{}'",
                                   flags.shard));
  if (!flags.shard.empty() && flags.report.output_path.empty())
    return ranks_usage(output,
                       "--shard I/N and -o FILE belong together: one says which files, the other "
                       "where their summaries go");
  if (!flags.shard.empty() && task != RanksTask::kReport)
    return ranks_usage(output, "--shard takes paths only: write parts first, then ask about them");
  if (const std::string mistake = ranks_task_mistake(task, paths, flags.task, flags.report);
      !mistake.empty())
    return ranks_usage(output, mistake);
  if (const int code = check_report_target(flags.report, output); code != kOk) return code;
  return flags.shard.empty() ? run_task(task, paths, flags, output)
                             : write_shard(*shard, flags, output);
}

}  // namespace

void add_ranks_command(CommandLine& line) {
  Command command =
      line.command("ranks", "many ranks of one job: which rank delays the others, and why");
  const auto flags = std::make_shared<RanksFlags>();
  command.arguments("PATHS", &flags->paths,
                    "a folder with the traces of a job's ranks, a pattern in quotes, the files, or "
                    "parts that --shard wrote; before them may come table, diff, check or hang");
  const Option json =
      command.switch_flag("--json", &flags->report.json, "JSON: docs/formats/json_output.md");
  const Option csv = command.switch_flag("--csv", &flags->report.csv, "CSV, one line per rank");
  const Option html = command.text_flag("--html", &flags->report.html_path, "OUT.html",
                                        "write one page that needs nothing else: who is late and "
                                        "when, what each rank does, where ranks wait; - prints it",
                                        {Completes::kFile});
  json.excludes(csv).excludes(html);
  csv.excludes(html);
  command.number_flag(
      "--jobs,-j", &flags->jobs, 1, 1024,
      "files to read at a time (default: one per core); each needs the memory of a trace");
  command.text_flag("--shard", &flags->shard, "I/N",
                    "read only every N-th file, from the I-th on, and write their summaries to -o");
  command.text_flag("-o,--output", &flags->report.output_path, "FILE",
                    "where to write the answer; with --shard the summaries, such as part0.lsranks",
                    {Completes::kFile});
  command.switch_flag("--force", &flags->report.force, "overwrite an existing file");
  command.text_flag("--budget", &flags->task.budget, "FILE",
                    "with check: limits that every rank must keep: docs/formats/budget.md",
                    {Completes::kFile});
  command.text_flag("--sort-by", &flags->task.sort_by, "COLUMN",
                    "with table: own, waits, step, ... most first (default: by rank)");
  command.number_flag("--row-limit", &flags->task.row_limit, 1, 1'000'000,
                      "with table: show that many ranks (default: all)");
  command.epilogue(R"(Words before PATHS:
  table JOB                 every rank in a line
  diff JOB_A JOB_B          what changed from A to B: parts of the step, ranks, collectives
  check JOB --budget FILE   does every rank keep its limits? Exit code 1 if not
  hang DUMPS                why does a job hang? From PyTorch's flight-recorder dumps or killed recordings

Examples:
  lanescope ranks traces/                                     every rank's trace in a folder
  lanescope ranks 'traces/step100_rank*.json.gz' --json
  lanescope ranks traces/ --html job.html                     a page to look at, to print, to send
  lanescope ranks traces/ --shard 0/4 -o part0.lsranks        a quarter of a large job, on each of 4 machines
  lanescope ranks part*.lsranks                               the same answer from the 4 parts
  lanescope ranks diff monday/ today/                         why is a step slower, and on which ranks?
  lanescope ranks check traces/ --budget job.toml             for CI
  lanescope ranks hang /tmp/dumps                             which rank stopped, which collective differs

What the numbers mean: docs/definitions/ranks.md. A file that cannot be read is named; the others still count.
)");
  command.runs([flags](Output& output) -> int { return run_ranks(*flags, output); });
}

}  // namespace lanescope::cli
