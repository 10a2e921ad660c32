// Many small copies to the GPU, one directly after the other, that one copy could replace.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;
using analysis::WorkClass;

namespace {

constexpr std::int64_t kLargestSmallBytes = 65'536;  // the bus needs 1 to 3 us for it
constexpr std::size_t kLeastCopies = 8;              // one directly after the other

struct SmallCopies {
  std::uint64_t copies = 0, runs = 0;
  std::int64_t size_bytes = 0, copies_ns = 0;
  LostTime lost;              // in the runs
  std::int64_t saved_ns = 0;  // of it, by one copy for each run
  std::size_t longest_run = 0;
  SliceId first = kNone<SliceId>;  // of the longest run
  bool is_even = true;             // all of one size
};

bool is_small_upload(const Facts& facts, const LaunchedWork& each) {
  const std::int64_t size_bytes = bytes_of(facts, each.work->slice);
  return each.work->work == WorkClass::kCopy &&
         facts.trace->name(each.work->slice).starts_with("Memcpy HtoD") && size_bytes > 0 &&
         size_bytes <= kLargestSmallBytes;
}

struct CopyRow {
  Window window;
  std::size_t copies = 0;
};

CopyRow copy_row_of(const Facts& facts, const LaunchSequence& sequence, std::size_t first,
                    std::size_t end) {
  const SliceId op = outermost_operator_of(facts, sequence[first].call);
  const SliceId begins = op == kNone<SliceId> ? sequence[first].call : op;
  const std::int64_t last_ns = sequence[end - 1].work->end_ns;
  return {{facts.trace->start_ns(begins), std::max(last_ns, next_work_ns(facts, last_ns))},
          end - first};
}

std::optional<SmallCopies> measure_small_copies(const Facts& facts) {
  SmallCopies found;
  std::vector<CopyRow> runs;
  std::int64_t size_of_first = 0;
  for (const LaunchSequence& sequence : launch_sequences(facts)) {
    for (std::size_t i = 0; i < sequence.size();) {
      std::size_t end = i;
      while (end < sequence.size() && is_small_upload(facts, sequence[end])) ++end;
      if (end - i >= kLeastCopies) {
        runs.push_back(copy_row_of(facts, sequence, i, end));
        for (std::size_t k = i; k < end; ++k) {
          const std::int64_t size_bytes = bytes_of(facts, sequence[k].work->slice);
          if (found.copies++ == 0) size_of_first = size_bytes;
          found.is_even &= size_bytes == size_of_first;
          found.size_bytes += size_bytes;
          found.copies_ns += sequence[k].work->end_ns - sequence[k].work->start_ns;
        }
        if (end - i > found.longest_run) {
          found.longest_run = end - i;
          found.first = sequence[i].work->slice;
        }
      }
      i = std::max(end, i + 1);
    }
  }
  found.runs = runs.size();
  sort_rows(runs.begin(), runs.end(), [](const CopyRow& a, const CopyRow& b) {
    return a.window.start_ns < b.window.start_ns;
  });
  std::int64_t counted_until = 0;
  for (const CopyRow& run : runs) {
    const Window window{std::max(run.window.start_ns, counted_until), run.window.end_ns};
    counted_until = std::max(counted_until, window.end_ns);
    const LostTime lost = lost_in(facts, steady_parts(facts, joined({window})));
    // One copy stays, with its share of the time.
    found.saved_ns += lost.total_ns() - lost.total_ns() / static_cast<std::int64_t>(run.copies);
    found.lost.idle_ns += lost.idle_ns;
    found.lost.copies_ns += lost.copies_ns;
    found.lost.after_waits_ns += lost.after_waits_ns;
    found.lost.in_copy_calls_ns += lost.in_copy_calls_ns;
    found.lost.quiet_ns += lost.quiet_ns;
  }
  if (found.runs == 0 || wall_share(facts, found.saved_ns) < 0.02) return std::nullopt;
  return found;
}

Finding tell_small_copies(const Facts& facts, const SmallCopies& found) {
  const auto steps = static_cast<std::uint64_t>(facts.selection.steady.size());
  const auto mean_bytes = found.size_bytes / static_cast<std::int64_t>(found.copies);
  Finding finding;
  finding.verdict = say(
      facts,
      "{} small copies [in {} steps] go to the GPU one by one, {} each{}: the GPU computes nothing "
      "for {} [per step] ({}) while they are called.",
      {count(found.copies), count(steps), bytes(mean_bytes),
       text(found.is_even ? "" : " on average"), ns(facts.per_step(found.lost.total_ns())),
       ratio(found.lost.total_ns(), facts.wall.partition.wall_ns)});
  finding.at_stake_ns = facts.per_step(found.saved_ns);
  finding.at_stake_ratio = wall_share(facts, found.saved_ns);
  finding.arithmetic.push_back(say(
      facts,
      "idle {} + copies alone {} [per step], from the first copy of a row of them to the next work "
      "after the last; one copy for each of {} [row|rows] keeps its share of this, so at most {} "
      "[per step] go",
      {ns(facts.per_step(found.lost.idle_ns)), ns(facts.per_step(found.lost.copies_ns)),
       count(found.runs), ns(facts.per_step(found.saved_ns))}));
  finding.arithmetic.push_back(
      say("the bytes are not the matter: the copies themselves take {}, {} each",
          {ns(found.copies_ns), ns(found.copies_ns / static_cast<std::int64_t>(found.copies))}));
  Sentence line = say("the first of {} copies directly one after the other",
                      {count(static_cast<std::uint64_t>(found.longest_run))});
  const SliceId op = outermost_operator_of(facts, found.first);
  if (op != kNone<SliceId>) {
    line.pattern += ", by {}";
    line.values.push_back(name(facts.trace->name(op)));
  }
  add_line(facts, facts.links.launch_of[raw(found.first)], line);
  finding.evidence.push_back({found.first, std::move(line)});
  finding.try_next = {
      "put the pieces together on the CPU (torch.stack, torch.cat, the DataLoader's collate_fn), "
      "then copy once",
      "pinned memory alone changes little: each copy costs its call, not its bytes"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.copies;
  finding.sample_noun = "copy";
  finding.explains = {
      {"host-sync", facts.per_step(found.lost.after_waits_ns)},
      {"pageable-copy", facts.per_step(found.lost.in_copy_calls_ns + found.lost.copies_ns)},
      {"exposed-copy", facts.per_step(found.lost.copies_ns)},
      {"python-hole", facts.per_step(found.lost.quiet_ns)}};
  finding.brief = say(facts, "{} small copies [in {} steps] go to the GPU one by one, {} each{}",
                      {count(found.copies), count(steps), bytes(mean_bytes),
                       text(found.is_even ? "" : " on average")});
  finding.action = say("Stack them on the CPU (torch.stack, torch.cat), and copy once");
  return finding;
}

}  // namespace

extern constinit const Rule small_copies_rule = {
    .id = "small-copies",
    .question = "could one copy to the GPU replace many small copies?",
    .meant_by = "copy stack",
    .order = 85,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_small_copies, tell_small_copies>,
};

}  // namespace lanescope::explain::rules
