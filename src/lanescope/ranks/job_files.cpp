#include "lanescope/ranks/job_files.h"

#include <map>
#include <utility>

#include "lanescope/analysis/collective_calls.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/message.h"
#include "lanescope/ranks/roster.h"

namespace lanescope::ranks {
namespace {

// The calls of a rank stay where its file was read; the rest of the summary goes to worker 0.
struct Calls {
  std::vector<ProcessGroup> groups;
  std::vector<CollectiveKind> kinds;
  std::vector<CollectiveRecord> collectives;
};

Calls take_calls(RankSummary& summary) {
  Calls calls{std::move(summary.groups), std::move(summary.kinds), std::move(summary.collectives)};
  summary.groups.clear();
  summary.kinds.clear();
  summary.collectives.clear();
  return calls;
}

RankCallTotals totals_of(const RankSummary& summary) {
  RankCallTotals totals;
  totals.calls = summary.collectives.size();
  for (const CollectiveRecord& call : summary.collectives) {
    if (call.step < 0 || !summary.steps[static_cast<std::size_t>(call.step)].steady) continue;
    const std::int64_t bytes = summary.kinds[call.kind].bytes;
    if (bytes < 0 || bytes >= analysis::kSmallMessageBytes) continue;
    ++totals.small_calls;
    totals.small_exposed_ns += call.exposed_ns;
  }
  return totals;
}

void write_optional(MessageWriter& out, const std::optional<std::int64_t>& value) {
  out.put(value.has_value()).put(value.value_or(0));
}
std::optional<std::int64_t> read_optional(MessageReader& in) {
  const bool known = in.get<bool>();
  const auto value = in.get<std::int64_t>();
  return known ? std::optional(value) : std::nullopt;
}

void write_file(MessageWriter& out, const PlacedFile& placed) {
  out.put(placed.place).put_text(placed.file.file);
  const auto* const error = std::get_if<Error>(&placed.file.content);
  out.put(error != nullptr);
  if (error) {
    out.put(error->code).put_text(error->message).put(error->offset.has_value());
    out.put(error->offset.value_or(0));
    return;
  }
  const auto& summary = std::get<RankSummary>(placed.file.content);
  out.put_text(summary.file);
  write_optional(out, summary.rank);
  write_optional(out, summary.world_size);
  out.put_text(summary.backend).put_text(summary.host_name).put_text(summary.device);
  out.put(summary.device_count).put(summary.origin_ns).put(summary.window_ns);
  out.put(summary.truncated).put(summary.lost_events).put(summary.steps_marked);
  out.put_text(summary.step_unit);
  out.put(summary.unlinked_collectives).put(summary.dropped_collectives);
  out.put(summary.groups_unknown);
  out.put(summary.totals).put_rows(summary.steps);
  out.put(static_cast<std::uint64_t>(summary.host_parts.size()));
  for (const HostPart& part : summary.host_parts) out.put_text(part.name).put(part.time_ns);
}

PlacedFile read_file(MessageReader& in) {
  PlacedFile placed;
  placed.place = in.get<std::uint64_t>();
  placed.file.file = in.get_text();
  if (in.get<bool>()) {
    Error error;
    error.code = in.get<Errc>();
    error.message = in.get_text();
    const bool has_offset = in.get<bool>();
    const auto offset = in.get<std::uint64_t>();
    if (has_offset) error.offset = offset;
    placed.file.content = std::move(error);
    return placed;
  }
  RankSummary summary;
  summary.file = in.get_text();
  summary.rank = read_optional(in);
  summary.world_size = read_optional(in);
  summary.backend = in.get_text();
  summary.host_name = in.get_text();
  summary.device = in.get_text();
  summary.device_count = in.get<std::uint64_t>();
  summary.origin_ns = in.get<std::int64_t>();
  summary.window_ns = in.get<std::int64_t>();
  summary.truncated = in.get<bool>();
  summary.lost_events = in.get<std::uint64_t>();
  summary.steps_marked = in.get<bool>();
  summary.step_unit = in.get_text();
  summary.unlinked_collectives = in.get<std::uint64_t>();
  summary.dropped_collectives = in.get<std::uint64_t>();
  summary.groups_unknown = in.get<bool>();
  summary.totals = in.get<RankCallTotals>();
  summary.steps = in.get_rows<RankStep>();
  for (auto count = in.get<std::uint64_t>(); count > 0; --count) {
    HostPart part;
    part.name = in.get_text();
    part.time_ns = in.get<std::int64_t>();
    summary.host_parts.push_back(std::move(part));
  }
  placed.file.content = std::move(summary);
  return placed;
}

// On worker 0 all files in the order of their places; elsewhere nothing.
std::vector<PlacedFile> gather_files(std::vector<PlacedFile> own, Communicator& workers) {
  if (workers.workers() == 1) return own;
  MessageWriter message;
  for (const PlacedFile& file : own) write_file(message, file);
  own.clear();
  std::vector<PlacedFile> all;
  for (const std::string& each : workers.gather(message.finish()))
    for (MessageReader in(each); !in.at_end();) all.push_back(read_file(in));
  sort_rows(all.begin(), all.end(),
            [](const PlacedFile& a, const PlacedFile& b) { return a.place < b.place; });
  return all;
}

// Where the rank of a job is from.
struct Source {
  std::uint64_t place = 0;
  std::int64_t origin_ns = 0;
  std::uint64_t steps = 0;
  std::uint64_t on_cpu = 0;
};

std::string write_decision(const Result<Job>& job) {
  MessageWriter out;
  out.put(job.has_value());
  if (!job) return out.put(job.error().code).put_text(job.error().message).finish();
  std::vector<Source> sources;
  for (const RankSummary& rank : job->ranks)
    sources.push_back(
        {rank.place, rank.origin_ns, rank.steps.size(), rank.device_count == 0 ? 1u : 0u});
  return out.put_rows(sources).finish();
}

}  // namespace

Result<DividedJob> divide_job(std::vector<PlacedFile> files, Communicator& workers) {
  std::map<std::uint64_t, std::pair<Calls, std::vector<RankStep>>> calls;  // by place
  for (PlacedFile& file : files)
    if (auto* const summary = std::get_if<RankSummary>(&file.file.content)) {
      summary->place = file.place;
      summary->totals = totals_of(*summary);
      calls[file.place] = {take_calls(*summary), summary->steps};
    }
  Result<Job> job = Job();
  files = gather_files(std::move(files), workers);
  if (workers.worker() == 0) {
    std::vector<RankFile> all;
    for (PlacedFile& file : files) {
      if (auto* const summary = std::get_if<RankSummary>(&file.file.content))
        summary->place = file.place;
      all.push_back(std::move(file.file));
    }
    job = make_roster(std::move(all));
  }
  const std::string decision = workers.broadcast(write_decision(job));
  MessageReader in(decision);
  if (!in.get<bool>()) {
    if (workers.worker() == 0) return job.error();
    const auto code = in.get<Errc>();
    return Error{code, std::string(in.get_text())};
  }
  DividedJob out;
  if (workers.worker() == 0) out.job = *std::move(job);
  const auto sources = in.get_rows<Source>();
  std::vector<std::uint32_t> own;
  for (std::uint32_t rank = 0; rank < sources.size(); ++rank) {
    out.layout.origin_ns.push_back(sources[rank].origin_ns);
    out.layout.on_cpu.push_back(sources[rank].on_cpu != 0);
    const auto found = calls.find(sources[rank].place);
    if (found == calls.end()) continue;
    own.push_back(rank);
    RankSummary summary;
    summary.groups = std::move(found->second.first.groups);
    summary.kinds = std::move(found->second.first.kinds);
    summary.collectives = std::move(found->second.first.collectives);
    summary.steps = std::move(found->second.second);
    out.own.push_back({rank, std::move(summary)});
  }
  out.layout.home.assign(sources.size(), 0);
  const auto homes = workers.share(bytes_of(own));
  for (std::uint32_t worker = 0; worker < homes.size(); ++worker) {
    std::vector<std::uint32_t> of_worker;
    append_rows(homes[worker], of_worker);
    for (const std::uint32_t rank : of_worker) out.layout.home[rank] = worker;
  }
  return out;
}

}  // namespace lanescope::ranks
