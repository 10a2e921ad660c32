#include "lanescope/server/rank_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/base/usable_cores.h"
#include "lanescope/format/index_file/kept_texts.h"
#include "lanescope/ranks/merge_traces.h"
#include "lanescope/ranks/read_ranks.h"
#include "lanescope/ranks/summary_text.h"
#include "lanescope/report/ranks_words.h"
#include "lanescope/report/text_format.h"
#include "lanescope/server/give_way.h"

namespace lanescope::server {
namespace {

constexpr std::string_view kAll = "all";

std::string file_name(const std::string& path) {
  return report::one_line(std::string_view(path).substr(path.rfind('/') + 1));
}

Error too_many(std::size_t count) {
  return {Errc::kInvalidArgument,
          fmt::format("{} ranks are too many to read for one page, which shows at most {}; "
                      "lanescope ranks reads any number",
                      count, RankSet::kMostTogether)};
}

}  // namespace

RankSet::RankSet(std::string folder, std::vector<RankPath> ranks, ReadTrace read)
    : folder_(std::move(folder)), ranks_(std::move(ranks)), read_(std::move(read)) {}

bool RankSet::has(const std::string& path) const {
  return path == folder_ || std::any_of(ranks_.begin(), ranks_.end(),
                                        [&](const RankPath& each) { return each.path == path; });
}

std::string RankSet::path_of(std::string_view which) const {
  if (which == kAll) return folder_;
  for (const RankPath& each : ranks_)
    if (fmt::format("{}", each.rank) == which) return each.path;
  return {};
}

Result<std::shared_ptr<const TraceState>> RankSet::open(std::string_view which) {
  const std::lock_guard lock(open_mutex_);
  const auto known = std::find_if(open_.begin(), open_.end(),
                                  [&](const auto& each) { return each.first == which; });
  if (known != open_.end()) {
    std::rotate(known, known + 1, open_.end());
    return open_.back().second;
  }
  auto made = make(which);
  if (!made) return made;
  if (open_.size() == kMostOpen) open_.erase(open_.begin());
  open_.emplace_back(std::string(which), *made);
  return made;
}

Result<std::shared_ptr<const TraceState>> RankSet::make(std::string_view which) {
  if (which == kAll) {
    const auto known = job();
    if (!known) return known.error();
    auto merged = ranks::merge_traces((*known)->job, read_);
    if (!merged) return merged.error();
    return TraceState::make(std::move(merged->trace), folder_, "lanescope ranks " + folder_);
  }
  const std::string path = path_of(which);
  if (path.empty()) return Error{Errc::kInvalidArgument, "there is no such rank"};
  Result<Trace> trace = read_(path);
  if (!trace) return trace.error();
  return TraceState::make(std::move(*trace), path);
}

Result<const RankSet::JobVerdict*> RankSet::job() {
  const std::lock_guard lock(job_mutex_);
  if (!job_) {
    if (!can_be_together()) return too_many(ranks_.size());
    std::vector<std::string> paths;
    for (const RankPath& each : ranks_) paths.push_back(each.path);
    ranks::ReadRanksOptions options;
    options.workers = usable_cores();
    options.read_trace = read_;
    options.keep_summaries = format::keep_texts({"ranks", ranks::summary_version()});
    // The threads that read inherit the share.
    run_giving_way([&] {
      Result<ranks::Job> job = ranks::build_job(ranks::read_rank_files(paths, options));
      if (job) {
        ranks::JobVerdict verdict = ranks::judge_job(*job);
        job_.emplace(JobVerdict{std::move(*job), std::move(verdict)});
      } else {
        job_.emplace(job.error());
      }
    });
  }
  if (!*job_) return job_->error();
  return &**job_;
}

void RankSet::write_list(report::JsonWriter& json, const std::string& path) const {
  json.begin_object("ranks").boolean("together", can_be_together());
  if (path == folder_) json.text("shown", kAll);
  for (const RankPath& each : ranks_)
    if (each.path == path) json.text("shown", fmt::format("{}", each.rank));
  json.begin_array("list");
  for (const RankPath& each : ranks_)
    json.begin_object().integer("rank", each.rank).text("title", file_name(each.path)).end_object();
  json.end_array().end_object();
}

Result<std::string> RankSet::job_answer() {
  const auto known = job();
  if (!known) return known.error();
  const auto& [job, verdict] = **known;
  report::JsonWriter json("view");
  json.begin_array("sentences");
  for (const std::string& each : report::verdict_sentences(verdict)) json.text({}, each);
  json.end_array().begin_array("remarks");
  for (const ranks::Remark& each : job.remarks) json.text({}, report::one_line(each.text));
  for (const ranks::JobNote& each : verdict.notes) json.text({}, each.text);
  json.end_array().begin_array("late");
  for (const std::int64_t rank : verdict.ranks) json.integer({}, rank);
  json.end_array().begin_array("rows");
  for (std::size_t i = 0; i < job.times.size(); ++i) {
    const ranks::RankTimes& times = job.times[i];
    json.begin_object().integer("rank", job.numbers[job.compared[i]]);
    json.integer("step_ns", times.wall_ns).integer("own_ns", times.own_ns);
    json.integer("compute_ns", times.compute_ns).integer("idle_ns", times.idle_ns());
    json.integer("copy_ns", times.copy_ns).integer("transfer_ns", times.exposed_transfer_ns());
    json.integer("wait_ns", times.exposed_wait_ns).integer("hidden_ns", times.hidden_ns);
    json.end_object();
  }
  return json.end_array().text("command", "lanescope ranks " + folder_).take();
}

}  // namespace lanescope::server
