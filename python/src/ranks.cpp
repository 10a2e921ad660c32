// ranks: the traces of one job, read with several threads, and the dumps of a job that hangs. Answers
// are the JSON and the text of `lanescope ranks`.
#include <memory>
#include <string>
#include <vector>

#include "bindings.h"
#include "lanescope/cli/budget_file.h"
#include "lanescope/format/formats.h"
#include "lanescope/format/index_file/kept_texts.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/ranks/hang.h"
#include "lanescope/ranks/job_budget.h"
#include "lanescope/ranks/job_compare.h"
#include "lanescope/ranks/job_verdict.h"
#include "lanescope/ranks/rank_files.h"
#include "lanescope/ranks/read_ranks.h"
#include "lanescope/ranks/summary_text.h"
#include "lanescope/report/ranks_check.h"
#include "lanescope/report/ranks_diff.h"
#include "lanescope/report/ranks_hang.h"
#include "lanescope/report/ranks_text.h"

namespace lanescope::python {
namespace {

struct Answer {
  std::string json, text;
};

py::tuple to_tuple(const Answer& answer) {
  return py::make_tuple(to_str(answer.json), to_str(answer.text));
}

// A finished job and its verdict. It never changes, so any number of threads may ask it.
struct RankJob {
  std::string label;  // the first path
  ranks::Job job;
  ranks::JobVerdict verdict;
};
using RankJobPtr = std::shared_ptr<RankJob>;

Result<RankJobPtr> read_job(const std::vector<std::string>& paths, std::size_t workers) {
  LANESCOPE_TRY(const std::vector<std::string> files,
                ranks::find_rank_files(paths, format::format_endings()));
  ranks::ReadRanksOptions options;
  options.workers = workers;
  options.read_trace = [](const std::string& path) {
    format::ReadOptions reading;
    reading.threads = 1;  // every worker reads a file of its own
    return format::open_indexed(path, reading, format::IndexUse::kRead);
  };
  options.keep_summaries = format::keep_texts({"ranks", ranks::summary_version()});
  LANESCOPE_TRY(ranks::Job job, ranks::build_job(ranks::read_rank_files(files, options)));
  ranks::JobVerdict verdict = ranks::judge_job(job);
  return std::make_shared<RankJob>(
      RankJob{paths.empty() ? std::string() : paths.front(), std::move(job), std::move(verdict)});
}

Result<Answer> compare(const RankJob& a, const RankJob& b) {
  LANESCOPE_TRY(const ranks::JobComparison change, ranks::compare_jobs(a.job, b.job));
  const report::JobSide a_side{a.label, &a.job, &a.verdict}, b_side{b.label, &b.job, &b.verdict};
  return Answer{report::ranks_diff_json(change, a_side, b_side),
                report::ranks_diff_text(change, a_side, b_side)};
}

Result<Answer> check(const RankJob& of, const std::string& budget_path) {
  LANESCOPE_TRY(const ranks::JobBudget budget, cli::read_job_budget(budget_path));
  const ranks::JobBudgetReport checked = ranks::check_job(of.job, of.verdict, budget);
  const report::JobCheck sides{of.label, budget_path, &of.verdict};
  return Answer{report::ranks_check_json(checked, sides), report::ranks_check_text(checked, sides)};
}

Result<Answer> read_hang(const std::vector<std::string>& paths) {
  LANESCOPE_TRY(
      std::vector<ranks::DumpFile> files,
      ranks::read_dump_files(paths, format::format_endings(), [](const std::string& path) {
        return format::open_indexed(path, {}, format::IndexUse::kRead);
      }));
  LANESCOPE_TRY(const ranks::HangReport found, ranks::find_hang(std::move(files)));
  return Answer{report::ranks_hang_json(found), report::ranks_hang_text(found)};
}

}  // namespace

void bind_ranks(py::module_& m) {
  py::class_<RankJob, RankJobPtr>(m, "RankJob")
      .def("answer",
           [](const RankJobPtr& self) {
             return to_tuple(without_gil([&] {
               return Answer{report::ranks_json(self->job, self->verdict),
                             report::ranks_text(self->job, self->verdict)};
             }));
           })
      .def("diff",
           [](const RankJobPtr& self, const RankJobPtr& other) {
             return to_tuple(value_or_raise(without_gil([&] { return compare(*self, *other); })));
           })
      .def("check", [](const RankJobPtr& self, const std::string& budget) {
        return to_tuple(value_or_raise(without_gil([&] { return check(*self, budget); })));
      });
  m.def(
      "read_ranks",
      [](const std::vector<std::string>& paths, std::size_t workers) {
        return value_or_raise(without_gil([&] { return read_job(paths, workers); }));
      },
      py::arg("paths"), py::arg("workers"));
  m.def(
      "read_hang",
      [](const std::vector<std::string>& paths) {
        return to_tuple(value_or_raise(without_gil([&] { return read_hang(paths); })));
      },
      py::arg("paths"));
}

}  // namespace lanescope::python
