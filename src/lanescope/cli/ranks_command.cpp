// `lanescope ranks`: what holds a distributed job up, from the traces of its ranks.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <thread>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/progress.h"
#include "lanescope/cli/ranks_report.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/format/formats.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/ranks/job.h"
#include "lanescope/ranks/part_file.h"
#include "lanescope/ranks/rank_files.h"
#include "lanescope/ranks/read_ranks.h"
#include "lanescope/record/range.h"

namespace lanescope::cli {
namespace {

struct RanksFlags {
  std::vector<std::string> paths;
  std::string shard;
  std::optional<std::int64_t> jobs;
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
  ProgressLine line(output, "reading traces", ProgressUnit::kEvents);
  ranks::ReadRanksOptions options;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  options.workers = flags.jobs ? static_cast<std::size_t>(*flags.jobs) : cores;
  options.read_trace = [](const std::string& path) {
    return format::open_indexed(path, {}, format::IndexUse::kRead);
  };
  options.progress = [&](std::size_t done, std::size_t total) { line.update(done, total); };
  return ranks::read_rank_files(files, options);
}

int run_ranks(const RanksFlags& flags, Output& output) {
  if (flags.paths.empty())
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
  if (const int code = check_report_target(flags.report, output); code != kOk) return code;
  auto files = ranks::find_rank_files(flags.paths, format::format_endings());
  if (!files) return ranks_usage(output, message_of(files.error()));
  auto read = read_files(ranks::shard_of(*files, shard->index, shard->count), flags, output);
  if (!flags.shard.empty())
    return save_text(ranks::write_part(read), flags.report.output_path, output);

  RecordFunction stage("ranks: job");
  const Result<ranks::Job> job = ranks::build_job(std::move(read));
  if (!job) return ranks_usage(output, message_of(job.error()));
  stage.end();
  return print_job(*job, flags.report, output);
}

}  // namespace

void add_ranks_command(CommandLine& line) {
  Command command =
      line.command("ranks", "many ranks of one job: who holds the others up, and by what");
  const auto flags = std::make_shared<RanksFlags>();
  command.arguments("PATHS", &flags->paths,
                    "a folder with the traces of a job's ranks, a pattern in quotes, the files, or "
                    "parts that --shard wrote");
  CLI::Option* json =
      command.switch_flag("--json", &flags->report.json, "JSON: docs/formats/json_output.md");
  CLI::Option* csv = command.switch_flag("--csv", &flags->report.csv, "CSV, a line a rank");
  CLI::Option* html = command.text_flag("--html", &flags->report.html_path, "OUT.html",
                                        "write one page that needs nothing else: who is late and "
                                        "when, what each rank does, where ranks wait; - prints it",
                                        {Completes::kFile});
  json->excludes(csv)->excludes(html);
  csv->excludes(html);
  command.number_flag("--jobs,-j", &flags->jobs, 1, 1024,
                      "files to read at a time (default: one a core); each needs the memory of a "
                      "trace");
  command.text_flag("--shard", &flags->shard, "I/N",
                    "read only every N-th file, from the I-th on, and write what is needed of them "
                    "to -o");
  command.text_flag("-o,--output", &flags->report.output_path, "FILE",
                    "where to write the answer; with --shard the summaries, such as part0.lsranks",
                    {Completes::kFile});
  command.switch_flag("--force", &flags->report.force, "overwrite an existing file");
  command.epilogue(R"(Examples:
  lanescope ranks traces/                                     every rank's trace in a folder
  lanescope ranks 'traces/step100_rank*.json.gz' --json
  lanescope ranks traces/ --html job.html                     a page to look at, to print, to send
  lanescope ranks traces/ --shard 0/4 -o part0.lsranks        a quarter of a large job, on each of 4 machines
  lanescope ranks part*.lsranks                               the same answer from the 4 parts

What the numbers mean: docs/definitions/ranks.md. A file that cannot be read is named, and the others count.
)");
  command.runs([flags](Output& output) -> int { return run_ranks(*flags, output); });
}

}  // namespace lanescope::cli
