// Collectives of Gloo or MPI in a recording without GPU work: they run on threads of their own, and
// the thread that runs the steps waits for them.
#include <algorithm>
#include <optional>
#include <string>

#include "lanescope/analysis/cpu_collectives.h"
#include "lanescope/analysis/interval_union.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

// A collective of less data takes about as long as an empty one, so many could become one.
constexpr double kSmallCollectiveBytes = 256 * 1024;
constexpr std::uint64_t kManySmallCollectives = 8;

struct CpuCollectives {
  std::string library;              // "Gloo"
  std::uint64_t count = 0;          // that touch steady steps
  std::uint64_t unknown = 0;        // of them, without a recorded size
  std::int64_t between_two_ns = 0;  // of sends and receives, added up
  std::int64_t sum_ns = 0;          // of all, added up
  std::uint64_t small =
      0;  // of them, of kSmallCollectiveBytes or less, where their sizes are recorded
  std::int64_t most_small_bytes = 0;
  std::int64_t time_ns = 0;     // union, in steady steps
  std::int64_t waiting_ns = 0;  // of it, while the step's thread had no operator
  SliceId longest = kNone<SliceId>;
};

// A send or a receive: "gloo:recv".
bool is_between_two(std::string_view name) {
  return name.ends_with(":send") || name.ends_with(":recv") || name.ends_with(":recvAnySource");
}

std::optional<CpuCollectives> measure_cpu_collectives(const Facts& facts) {
  const Trace& trace = *facts.trace;
  CpuCollectives found;
  analysis::IntervalUnion running;
  const auto is_collective = [](std::string_view name) {
    return analysis::cpu_collective_library(name) != nullptr;
  };
  for (const SliceId slice : slices_named(facts, is_collective)) {
    if (!is_front_end(trace.kind(slice))) continue;
    const char* library = analysis::cpu_collective_library(trace.name(slice));
    bool touches = false;
    for (const analysis::Window& window : facts.steady_windows) {
      const std::int64_t from = std::max(window.start_ns, trace.start_ns(slice));
      const std::int64_t to = std::min(window.end_ns, trace.end_ns(slice));
      running.add(from, to);
      touches |= from < to;
    }
    if (!touches) continue;
    found.library = library;
    ++found.count;
    found.sum_ns += trace.dur_ns(slice);
    if (is_between_two(trace.name(slice))) found.between_two_ns += trace.dur_ns(slice);
    const auto tensor = operator_inputs(trace, slice).tensor(0);
    found.unknown += !tensor;
    if (tensor && tensor->dense_bytes() <= kSmallCollectiveBytes) {
      ++found.small;
      found.most_small_bytes =
          std::max(found.most_small_bytes, static_cast<std::int64_t>(tensor->dense_bytes()));
    }
    if (found.longest == kNone<SliceId> || trace.dur_ns(slice) > trace.dur_ns(found.longest))
      found.longest = slice;
  }
  running.finish();
  found.time_ns = running.length_ns();
  if (found.time_ns * 10 < facts.steady_wall_ns() || !facts.cpu) return std::nullopt;
  // While the thread of the step is in operators, it works during the collectives.
  std::int64_t working_ns = 0;
  for (const analysis::Window& window : facts.steady_windows)
    facts.host->visit(facts.cpu->thread, window.start_ns, window.end_ns,
                      [&](SliceId slice, std::int64_t from, std::int64_t to) {
                        if (slice != kNone<SliceId> &&
                            !analysis::cpu_collective_library(trace.name(slice)) &&
                            trace.kind(slice) == CategoryKind::kCpuOp)
                          working_ns += running.length_within_ns(from, to);
                      });
  found.waiting_ns = found.time_ns - working_ns;
  return found.waiting_ns * 10 < facts.steady_wall_ns() ? std::nullopt : std::optional(found);
}

std::uint64_t of_a_step(const Facts& facts, std::uint64_t total) {
  return total / step_count(facts);
}

bool has_many_small(const Facts& facts, const CpuCollectives& found) {
  return found.small >= kManySmallCollectives * facts.selection.steady.size() &&
         found.small * 4 >= found.count * 3;
}

// Many collectives, of which the trace does not tell how large they are.
bool has_many_unknown(const Facts& facts, const CpuCollectives& found) {
  return found.unknown >= kManySmallCollectives * facts.selection.steady.size() &&
         found.unknown * 4 >= found.count * 3;
}

void tell_sends(const CpuCollectives& found, Finding& finding) {
  finding.brief = say("The main thread waits while {} sends and receives", {text(found.library)});
  finding.action = say(
      "Give less work to the rank that waits least (lanescope ranks FOLDER): others wait for it");
  finding.try_next = {
      "of the stages of a pipeline, the one that waits least sets the pace: move layers from it to "
      "the others, until all wait as long",
      "more and smaller micro batches shorten the time until the last stage begins; isend and "
      "irecv let a stage compute meanwhile"};
}

Finding tell_cpu_collectives(const Facts& facts, const CpuCollectives& found) {
  const std::int64_t wall_ns = facts.steady_wall_ns();
  const bool sends = found.between_two_ns * 2 >= found.sum_ns;
  Finding finding;
  finding.at_stake_ns = facts.per_step(found.waiting_ns);
  finding.at_stake_ratio = share_of(found.waiting_ns, wall_ns);
  finding.verdict =
      say(facts,
          std::string(found.waiting_ns * 2 > wall_ns ? "Communication-bound: of"
                                                     : "Partly communication-bound: of") +
              " the {} [a step takes] on the CPU, {} " +
              (sends ? "sends and receives" : "runs collectives") +
              " for {} ({}). For {} of that time the main thread runs no operator: it waits, or "
              "runs code that was not recorded.",
          {linked(ns(facts.per_step(wall_ns)), shows::kStep), text(found.library),
           linked(ns(facts.per_step(found.time_ns)), found.longest),
           linked(ratio(found.time_ns, wall_ns), found.longest),
           linked(ratio(found.waiting_ns, found.time_ns), found.longest)});
  finding.arithmetic.push_back(
      say(facts,
          "{} collectives with no operator at the same time = {} collectives - {} operators "
          "meanwhile [per step]",
          {ns(facts.per_step(found.waiting_ns)), ns(facts.per_step(found.time_ns)),
           ns(facts.per_step(found.time_ns - found.waiting_ns))}));
  finding.evidence.push_back({found.longest, say("the longest of {}", {count(found.count)})});
  finding.try_next = {
      "see whether a rank comes late: the same collective is shorter in the trace of the rank that "
      "comes last",
      "if all ranks take as long, fewer and larger collectives, less data (bf16, gradient "
      "compression), or work to do meanwhile"};
  finding.brief = say("The main thread waits while {} runs collectives", {text(found.library)});
  finding.action =
      say("Find the rank that comes last (lanescope ranks FOLDER); else send less, or overlap");
  if (sends) {
    tell_sends(found, finding);
  } else if (has_many_unknown(facts, found)) {
    finding.arithmetic.push_back(
        say(facts, "{} collectives [per step]; their sizes were not recorded (record_shapes=True)",
            {count(of_a_step(facts, found.count))}));
    finding.action = say("If its {} collectives are small: join the tensors, and send them in one",
                         {count(of_a_step(facts, found.count))});
  }
  if (!sends && has_many_small(facts, found)) {
    finding.arithmetic.push_back(
        say("{} collectives in a step, {} of them of at most {} each",
            {count(of_a_step(facts, found.count)), count(of_a_step(facts, found.small)),
             bytes(found.most_small_bytes)}));
    finding.action =
        say("Join the tensors: one collective of a flat buffer instead of {} small ones",
            {count(of_a_step(facts, found.small))});
    finding.try_next.insert(
        finding.try_next.begin(),
        "torch.cat the gradients into one buffer and reduce that, or let DDP make "
        "buckets: a small collective takes about as long as an empty one");
  }
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule cpu_collectives_rule = {
    .id = "cpu-collectives",
    .question = "does the program wait for collectives on the CPU (Gloo, MPI)?",
    .meant_by = "gloo mpi",
    .order = 49,
    .only_if = [](const Facts& facts) { return !facts.main_device && !facts.vendor; },
    .run = measure_and_tell<measure_cpu_collectives, tell_cpu_collectives>,
    .is_cpu_headline = true,
    .survives_cut = false,
};

}  // namespace lanescope::explain::rules
