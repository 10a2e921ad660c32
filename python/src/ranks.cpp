// ranks: the traces of one job, read with several threads; the answer is the JSON and the text of
// `lanescope ranks`.
#include <string>
#include <vector>

#include "bindings.h"
#include "lanescope/format/formats.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/ranks/job_verdict.h"
#include "lanescope/ranks/rank_files.h"
#include "lanescope/ranks/read_ranks.h"
#include "lanescope/report/ranks_text.h"

namespace lanescope::python {
namespace {

struct RanksAnswer {
  std::string json, text;
};

Result<RanksAnswer> answer_about_ranks(const std::vector<std::string>& paths, std::size_t workers) {
  LANESCOPE_TRY(const std::vector<std::string> files,
                ranks::find_rank_files(paths, format::format_endings()));
  ranks::ReadRanksOptions options;
  options.workers = workers;
  options.read_trace = [](const std::string& path) {
    format::ReadOptions reading;
    reading.threads = 1;  // every worker reads a file of its own
    return format::open_indexed(path, reading, format::IndexUse::kRead);
  };
  LANESCOPE_TRY(const ranks::Job job, ranks::build_job(ranks::read_rank_files(files, options)));
  const ranks::JobVerdict verdict = ranks::judge_job(job);
  return RanksAnswer{report::ranks_json(job, verdict), report::ranks_text(job, verdict)};
}

}  // namespace

void bind_ranks(py::module_& m) {
  m.def(
      "read_ranks",
      [](const std::vector<std::string>& paths, std::size_t workers) {
        const RanksAnswer found =
            value_or_raise(without_gil([&] { return answer_about_ranks(paths, workers); }));
        return py::make_tuple(to_str(found.json), to_str(found.text));
      },
      py::arg("paths"), py::arg("workers"));
}

}  // namespace lanescope::python
