// The `lanescope-mpi` program: `lanescope ranks` with one worker a process of an MPI job. Each worker reads
// files as they are handed out; then all analyse the job together (ranks/communicator.h). Worker 0 prints.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/cli/mpi_flags.h"
#include "lanescope/cli/output.h"
#include "lanescope/cli/ranks_report.h"
#include "lanescope/format/formats.h"
#include "lanescope/format/index_file/index_place.h"
#include "lanescope/format/index_file/kept_texts.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/ranks/job.h"
#include "lanescope/ranks/message.h"
#include "lanescope/ranks/rank_files.h"
#include "lanescope/ranks/read_ranks.h"
#include "lanescope/ranks/summary_text.h"
#include "lanescope/ranks_mpi/file_handout.h"
#include "lanescope/ranks_mpi/mpi_communicator.h"

namespace lanescope::cli {
namespace {

using ranks_mpi::MpiCommunicator;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The list of worker 0, so that all have the same one.
Result<std::vector<std::string>> agree_on_files(const MpiFlags& flags, MpiCommunicator& workers) {
  ranks::MessageWriter message;
  if (workers.worker() == 0) {
    const auto found = ranks::find_rank_files(flags.paths, format::format_endings());
    message.put(found.has_value());
    if (found) {
      message.put(static_cast<std::uint64_t>(found->size()));
      for (const std::string& file : *found) message.put_text(file);
    } else {
      message.put(found.error().code).put_text(found.error().message);
    }
  }
  const std::string text = workers.broadcast(message.finish());
  ranks::MessageReader in(text);
  if (!in.get<bool>()) {
    const auto code = in.get<Errc>();
    return Error{code, std::string(in.get_text())};
  }
  std::vector<std::string> files(in.get<std::uint64_t>());
  for (std::string& file : files) file = in.get_text();
  return files;
}

// The code of worker 0, which alone prints, on all workers.
int agree_on_code(int code, MpiCommunicator& workers) {
  return std::stoi(workers.broadcast(std::to_string(code)));
}

// A part has several rows; the place of a row follows that of its file.
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 32;

std::vector<ranks::PlacedFile> read_own_files(const std::vector<std::string>& files,
                                              MpiCommunicator& workers, std::size_t& count,
                                              Output& output) {
  ranks::ReadRanksOptions options;
  format::OtherFiles others;
  options.read_trace = [&others](const std::string& path) {
    others.look_next_to(path);
    return format::open_indexed(path, {}, format::IndexUse::kRead);
  };
  options.keep_summaries = format::keep_texts({"ranks", ranks::summary_version()});
  std::vector<ranks::PlacedFile> own;
  const auto order =
      workers.worker() == 0 ? ranks::largest_first(files) : std::vector<std::size_t>{};
  ranks_mpi::FileHandout handout(workers.worker(), workers.workers(), order);
  while (const auto index = handout.next()) {
    ++count;
    std::uint64_t row = 0;
    for (ranks::RankFile& file : ranks::read_rank_file(files[*index], options))
      own.push_back({*index * kMostRows + row++, std::move(file)});
  }
  if (const auto text = others.text()) output.complain(*text);
  return own;
}

void print_statistics(const MpiCommunicator& workers, std::size_t files, double reading,
                      double analysing, Output& output) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  output.note(fmt::format(
      "worker {}: read {} files in {:.2f} s, analysed for {:.2f} s, sent {} bytes in {} exchanges, "
      "peak memory {} kB",
      workers.worker(), files, reading, analysing, workers.sent_bytes(), workers.exchanges(),
      usage.ru_maxrss));
}

int run_mpi_ranks(const MpiFlags& flags, MpiCommunicator& workers, Output& output) {
  const auto files = agree_on_files(flags, workers);
  const bool is_first = workers.worker() == 0;
  const auto fail = [&](const Error& error) {
    if (is_first) output.complain("ranks: " + message_of(error));
    return kUsage;
  };
  if (!files) return fail(files.error());
  const int target = is_first ? check_report_target(flags.report, output) : kOk;
  if (const int code = agree_on_code(target, workers); code != kOk) return code;
  std::optional<ranks_mpi::LostWorkerReport> lost;
  if (is_first) lost.emplace(workers.workers(), *files);
  const Clock::time_point start = Clock::now();
  std::size_t count = 0;
  auto own = read_own_files(*files, workers, count, output);
  const double reading = seconds_since(start);
  const Clock::time_point read = Clock::now();
  const Result<ranks::Job> job = ranks::build_job(std::move(own), workers);
  lost.reset();
  if (!job) return fail(job.error());
  if (flags.statistics) print_statistics(workers, count, reading, seconds_since(read), output);
  return is_first ? print_job(*job, flags.report, output) : kOk;
}

int run_program(int argc, char** argv, MpiCommunicator& workers) {
  Output output;
  const MpiFlags flags = parse_mpi_flags(argc, argv);
  const bool is_first = workers.worker() == 0;
  if (!flags.help.empty()) {
    if (is_first) output.write(flags.help);
    return output.finish(kOk);
  }
  if (!flags.mistake.empty()) {
    if (is_first) output.complain(flags.mistake);
    return output.finish(kUsage);
  }
  return output.finish(run_mpi_ranks(flags, workers, output));
}

}  // namespace
}  // namespace lanescope::cli

int main(int argc, char** argv) {
  using lanescope::ranks_mpi::MpiSession;
  const auto started = MpiSession::start(&argc, &argv);
  if (!started) {
    fmt::print(stderr, "lanescope-mpi: {}\n", started.error().message);
    return lanescope::cli::kUsage;
  }
  lanescope::ranks_mpi::MpiCommunicator workers;
  int code = lanescope::cli::kFailed;
  try {
    code = lanescope::cli::run_program(argc, argv, workers);
  } catch (const std::bad_alloc&) {
    fmt::print(
        stderr,
        "lanescope-mpi: worker {} needs more memory than there is; start fewer workers on each "
        "machine, or use more machines\n",
        workers.worker());
    MpiSession::abort(code);
  } catch (const std::exception& error) {
    fmt::print(stderr, "lanescope-mpi: worker {}: {}\n", workers.worker(), error.what());
    MpiSession::abort(code);
  }
  const int agreed = lanescope::cli::agree_on_code(code, workers);
  MpiSession::finish();
  return agreed;
}
