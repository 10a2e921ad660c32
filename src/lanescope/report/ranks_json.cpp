#include <fmt/format.h>

#include <array>
#include <string>

#include "lanescope/report/json_writer.h"
#include "lanescope/report/ranks_text.h"
#include "lanescope/report/ranks_words.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using ranks::Job;
using ranks::JobVerdict;
using ranks::RankTimes;

constexpr std::array<const char*, analysis::kIdleCauseCount> kIdleNames{
    "host_late", "after_sync",        "launch_latency",  "between_queued", "waiting",
    "profiler",  "before_first_work", "after_last_work", "unknown"};

void write_times(JsonWriter& json, const RankTimes& times) {
  json.integer("step_ns", times.wall_ns)
      .integer("own_ns", times.own_ns)
      .integer("compute_ns", times.compute_ns)
      .integer("exposed_communication_ns", times.exposed_ns)
      .integer("hidden_communication_ns", times.hidden_ns)
      .integer("exposed_copy_ns", times.copy_ns)
      .integer("exposed_wait_ns", times.exposed_wait_ns)
      .integer("wait_ns", times.wait_ns)
      .integer("stage_wait_ns", times.stage.total_ns())
      .integer("cpu_operators_ns", times.host_work_ns)
      .integer("cpu_loader_ns", times.host_loader_ns)
      .integer("cpu_outside_ns", times.host_outside_ns)
      .integer("cpu_recording_ns", times.host_recording_ns)
      .integer("idle_ns", times.idle_ns())
      .begin_object("idle_by_cause_ns");
  for (std::size_t i = 0; i < kIdleNames.size(); ++i)
    json.integer(std::string(kIdleNames[i]) + "_ns", times.idle[i]);
  json.end_object();
}

void write_clock(JsonWriter& json, const ranks::RankClock& clock) {
  json.begin_object("clock").boolean("known", clock.known && !clock.contradicts);
  if (clock.known && !clock.contradicts) {
    json.integer("offset_ns", clock.offset_ns)
        .integer("error_ns", clock.error_ns)
        .real("drift_ppm", clock.drift * 1e6)
        .integer("collectives", clock.samples);
    if (clock.samples > 0)
      json.integer("lowest_ns", clock.lowest_ns).integer("highest_ns", clock.highest_ns);
  }
  json.end_object();
}

void write_ranks(JsonWriter& json, const Job& job) {
  std::size_t compared = 0;
  json.begin_array("ranks");
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const ranks::RankSummary& rank = job.ranks[i];
    json.begin_object().integer("rank", job.numbers[i]).text("file", rank.file);
    json.text("host", rank.host_name).text("device", rank.device);
    const bool is_compared = compared < job.compared.size() && job.compared[compared] == i;
    json.boolean("compared", is_compared);
    json.integer("collectives", rank.totals.calls)
        .integer("unlinked_collectives", rank.unlinked_collectives)
        .integer("dropped_collectives", rank.dropped_collectives)
        .integer("last_arrivals", job.last_arrivals[i]);
    write_clock(json, job.clocks[i]);
    if (is_compared) {
      json.boolean("waits_known", job.knows_waits(i)).begin_object("per_step");
      write_times(json, job.times[compared++]);
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
}

void write_groups(JsonWriter& json, const Job& job) {
  json.begin_array("groups");
  for (const auto& group : job.matching.groups) {
    json.begin_object().text("name", group.name).text("description", group.description);
    json.integer("size", group.size)
        .integer("matched_calls", group.matched)
        .integer("unmatched_calls", group.unmatched)
        .boolean("by_sequence", group.by_sequence)
        .begin_array("ranks");
    for (const std::uint32_t rank : group.ranks) json.integer("", job.numbers[rank]);
    json.end_array().end_object();
  }
  json.end_array().begin_array("communication_by_purpose");
  for (const ranks::GroupTimes& groups : job.groups)
    json.begin_object()
        .text("name", groups.name)
        .integer("groups", groups.groups)
        .integer("size", groups.size)
        .integer("calls", groups.calls)
        .integer("exposed_ns", groups.exposed_ns)
        .integer("exposed_wait_ns", groups.exposed_wait_ns)
        .end_object();
  json.end_array().begin_array("collectives");
  for (const auto& rate : job.rates) {
    json.begin_object().integer("group", rate.group).text("kind", rate.kind);
    json.integer("count", rate.count);
    if (rate.bytes >= 0) json.integer("bytes", rate.bytes);
    json.integer("together_ns", rate.together_ns).integer("arrival_spread_ns", rate.wait_ns);
    if (rate.bus_bandwidth > 0)
      json.real("algorithm_bytes_per_s", rate.algorithm_bandwidth)
          .real("bus_bytes_per_s", rate.bus_bandwidth);
    json.end_object();
  }
  json.end_array();
}

void write_steps(JsonWriter& json, const Job& job) {
  json.begin_array("steps");
  for (const auto& step : job.steps) {
    json.begin_object().integer("number", step.number).boolean("steady", step.steady);
    json.begin_array("own_ns");
    for (const RankTimes& times : step.times) json.integer("", times.own_ns);
    json.end_array().begin_array("step_ns");
    for (const RankTimes& times : step.times) json.integer("", times.wall_ns);
    json.end_array().begin_array("late_ns");
    for (const std::int64_t late : step.late_ns) json.integer("", late);
    json.end_array().end_object();
  }
  json.end_array();
}

void write_verdict(JsonWriter& json, const JobVerdict& verdict) {
  json.begin_object("verdict").text("kind", ranks::verdict_name(verdict.kind));
  std::string text;
  for (const std::string& sentence : verdict_sentences(verdict))
    text += (text.empty() ? "" : " ") + sentence;
  json.text("text", text).begin_array("ranks");
  for (const std::int64_t rank : verdict.ranks) json.integer("", rank);
  json.end_array()
      .integer("step_ns", verdict.step_ns)
      .integer("late_ns", verdict.late_ns)
      .integer("error_ns", verdict.error_ns)
      .integer("threshold_ns", verdict.threshold_ns)
      .integer("late_steps", verdict.late_steps)
      .integer("steps", verdict.steps)
      .integer("since_step", verdict.since_step)
      .boolean("since_start", verdict.since_start)
      .text("host_part", verdict.host_part)
      .integer("profiler_ns", verdict.profiler_ns)
      .integer("more_work_ns", verdict.more_work_ns)
      .integer("more_outside_ns", verdict.more_outside_ns)
      .begin_array("causes");
  for (const auto& part : verdict.causes)
    json.begin_object()
        .text("cause", ranks::cause_name(part.cause))
        .integer("longer_ns", part.longer_ns)
        .end_object();
  json.end_array();
  if (verdict.kind == ranks::VerdictKind::kPipeline) {
    const ranks::PipelineWaits& pipeline = verdict.pipeline;
    json.begin_object("pipeline")
        .integer("stages", pipeline.stages)
        .integer("micro_batches", pipeline.micro_batches)
        .real("least_ratio", pipeline.least_ratio)
        .integer("longest_rank", pipeline.longest_rank)
        .integer("longer_ns", pipeline.longer_ns)
        .integer("first_wait_ns", pipeline.waits.first_ns)
        .integer("between_wait_ns", pipeline.waits.between_ns)
        .integer("last_wait_ns", pipeline.waits.last_ns)
        .end_object();
  }
  json.begin_array("notes");
  for (const auto& note : verdict.notes)
    json.begin_object()
        .text("kind", ranks::note_name(note.kind))
        .text("text", note.text)
        .end_object();
  json.end_array().end_object();
}

std::string csv_field(std::string_view text) {
  std::string out = "\"";
  for (const char letter : one_line(text))
    out += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return out + '"';
}

}  // namespace

std::string ranks_json(const Job& job, const JobVerdict& verdict) {
  JsonWriter json("ranks");
  json.integer("rank_count", job.ranks.size());
  if (job.world_size) json.integer("world_size", *job.world_size);
  write_verdict(json, verdict);
  json.begin_array("remarks");
  for (const auto& remark : job.remarks)
    json.begin_object()
        .text("kind", ranks::remark_name(remark.kind))
        .text("text", remark.text)
        .end_object();
  json.end_array().integer("mismatches", job.matching.mismatch_count);
  write_ranks(json, job);
  write_steps(json, job);
  write_groups(json, job);
  return json.take();
}

std::string ranks_csv(const Job& job) {
  std::string out =
      "rank,file,host,device,step_ns,own_ns,compute_ns,exposed_communication_ns,"
      "hidden_communication_ns,exposed_copy_ns,exposed_wait_ns,wait_ns,idle_ns";
  for (const char* name : kIdleNames) out += fmt::format(",idle_{}_ns", name);
  out += ",clock_offset_ns,clock_error_ns,collectives,last_arrivals\n";
  std::size_t compared = 0;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const ranks::RankSummary& rank = job.ranks[i];
    out += fmt::format("{},{},{},{}", job.numbers[i], csv_field(rank.file),
                       csv_field(rank.host_name), csv_field(rank.device));
    if (compared < job.compared.size() && job.compared[compared] == i) {
      const RankTimes& times = job.times[compared++];
      out += fmt::format(",{},{},{},{},{},{}", times.wall_ns, times.own_ns, times.compute_ns,
                         times.exposed_ns, times.hidden_ns, times.copy_ns);
      out += job.knows_waits(i) ? fmt::format(",{},{}", times.exposed_wait_ns, times.wait_ns)
                                : std::string(",,");
      out += fmt::format(",{}", times.idle_ns());
      for (const std::int64_t idle : times.idle) out += fmt::format(",{}", idle);
    } else {
      out += std::string(9 + kIdleNames.size(), ',');
    }
    const ranks::RankClock& clock = job.clocks[i];
    out += clock.known && !clock.contradicts
               ? fmt::format(",{},{}", clock.offset_ns, clock.error_ns)
               : std::string(",,");
    out += fmt::format(",{},{}\n", rank.totals.calls, job.last_arrivals[i]);
  }
  return out;
}

}  // namespace lanescope::report
