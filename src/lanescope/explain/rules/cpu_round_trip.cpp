// A tensor goes from the GPU to the CPU, and the same number of bytes comes back before anything
// else is launched.
#include <algorithm>
#include <optional>
#include <vector>

#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {

using analysis::Window;
using analysis::WorkClass;

namespace {

constexpr std::int64_t kLargestReadValueBytes = 4096;  // a value that is read, no tensor

struct RoundTrips {
  std::uint64_t trips = 0;
  std::int64_t size_bytes = 0;  // both ways
  LostTime lost;
  SliceId down = kNone<SliceId>, up = kNone<SliceId>;  // of the longest
  std::uint64_t for_collectives = 0;  // trips with a collective of the CPU between both copies
  std::uint64_t for_optimizer = 0;    // trips with an optimizer's step between them
};

struct Trip {
  const LaunchedWork *down, *up;
};

bool is_copy(const Facts& facts, const LaunchedWork& each, std::string_view direction) {
  return each.work->work == WorkClass::kCopy &&
         facts.trace->name(each.work->slice).starts_with(direction);
}

bool is_value(const Facts& facts, const LaunchedWork& each) {
  return bytes_of(facts, each.work->slice) <= kLargestReadValueBytes;
}

// Another type on the way, such as NumPy's double for a float, changes the size.
bool is_same_tensor(std::int64_t down_bytes, std::int64_t up_bytes) {
  return up_bytes == down_bytes || up_bytes == 2 * down_bytes || down_bytes == 2 * up_bytes;
}

bool has_end(const Facts& facts, const LaunchedWork& copy, std::string_view memory) {
  return facts.trace->name(copy.work->slice).find(memory) != std::string_view::npos;
}

// A result that NumPy works on went down to pageable memory, and what comes back was in pinned memory.
bool is_from_other_memory(const Facts& facts, const Trip& trip) {
  return has_end(facts, *trip.down, "-> Pageable") && has_end(facts, *trip.up, "Pinned ->");
}

// A small copy is a value that the program reads, but for one between those of large tensors: a bias among weights.
// Copies up from pinned memory, one of which never was down, are the next batch: another one may have the size of a result by
// chance.
std::vector<Trip> trips_in(const Facts& facts, const LaunchSequence& sequence) {
  std::vector<Trip> trips;
  std::vector<const LaunchedWork*> on_cpu;  // copied down since the last kernel
  std::ptrdiff_t group = 0;                 // the first trip since the last kernel or copy down
  bool has_batch = false;
  const auto end_group = [&] {
    if (has_batch)
      trips.erase(
          std::remove_if(trips.begin() + group, trips.end(),
                         [&](const Trip& trip) { return is_from_other_memory(facts, trip); }),
          trips.end());
    group = static_cast<std::ptrdiff_t>(trips.size());
    has_batch = false;
  };
  for (const LaunchedWork& each : sequence) {
    if (is_copy(facts, each, "Memcpy DtoH")) {
      end_group();
      if (!is_value(facts, each) || !on_cpu.empty()) on_cpu.push_back(&each);
      continue;
    }
    if (!is_copy(facts, each, "Memcpy HtoD")) {
      if (each.work->work == WorkClass::kCopy) continue;
      on_cpu.clear();
      end_group();
      continue;
    }
    if (is_value(facts, each) && trips.empty()) continue;
    const auto same = std::find_if(on_cpu.begin(), on_cpu.end(), [&](const LaunchedWork* down) {
      return down->work->end_ns <= each.work->start_ns &&
             is_same_tensor(bytes_of(facts, down->work->slice), bytes_of(facts, each.work->slice));
    });
    if (same == on_cpu.end()) {
      has_batch = has_batch || (!is_value(facts, each) && has_end(facts, each, "Pinned ->"));
      continue;
    }
    trips.push_back({*same, &each});
    on_cpu.erase(same);
  }
  end_group();
  return trips;
}

// Collectives of other libraries than NCCL (Gloo, MPI) want the tensor on the CPU.
bool has_collective_between(const Facts& facts, SliceId down_call, SliceId up_call) {
  const Trace& trace = *facts.trace;
  if (trace.slices().track[raw(down_call)] != trace.slices().track[raw(up_call)]) return false;
  for (std::uint32_t i = raw(down_call) + 1; i < raw(up_call); ++i)
    if (trace.name(SliceId{i}).starts_with("c10d::")) return true;
  return false;
}

// An optimizer's step lies between both copies: gradients go down, and weights come back.
bool has_optimizer_between(const Facts& facts, SliceId down_call, SliceId up_call) {
  const Trace& trace = *facts.trace;
  if (trace.slices().track[raw(down_call)] != trace.slices().track[raw(up_call)]) return false;
  for (std::uint32_t i = raw(down_call) + 1; i < raw(up_call); ++i)
    if (names::is_optimizer_step(trace.name(SliceId{i}))) return true;
  return false;
}

std::optional<RoundTrips> measure_cpu_round_trip(const Facts& facts) {
  RoundTrips found;
  std::vector<Window> windows;
  std::int64_t longest_ns = -1;
  for (const LaunchSequence& sequence : launch_sequences(facts))
    for (const Trip& trip : trips_in(facts, sequence)) {
      ++found.trips;
      if (has_collective_between(facts, trip.down->call, trip.up->call)) ++found.for_collectives;
      if (has_optimizer_between(facts, trip.down->call, trip.up->call)) ++found.for_optimizer;
      found.size_bytes +=
          bytes_of(facts, trip.down->work->slice) + bytes_of(facts, trip.up->work->slice);
      if (is_value(facts, *trip.up)) continue;  // among the others
      const Window window{trip.down->work->start_ns, next_work_ns(facts, trip.up->work->end_ns)};
      windows.push_back(window);
      if (window.length_ns() <= longest_ns) continue;
      longest_ns = window.length_ns();
      found.down = trip.down->work->slice;
      found.up = trip.up->work->slice;
    }
  found.lost = lost_in(facts, steady_parts(facts, joined(std::move(windows))));
  if (found.trips == 0 || wall_share(facts, found.lost.total_ns()) < 0.02) return std::nullopt;
  return found;
}

void tell_collectives(const Facts& facts, const RoundTrips& found, Finding& finding) {
  finding.try_next.insert(finding.try_next.begin(),
                          "call the collectives on the tensors of the GPU, with the backend nccl: "
                          "init_process_group(\"nccl\"), or \"cpu:gloo,cuda:nccl\" for both");
  finding.brief =
      say(facts, "Tensors go to the CPU for a collective and back, {} [time|times] [in {} steps]",
          {count(found.trips), count(facts.selection.steady.size())});
  finding.action = say("Send them from the GPU: the backend nccl takes CUDA tensors");
}

Finding tell_cpu_round_trip(const Facts& facts, const RoundTrips& found) {
  const std::int64_t total_ns = found.lost.total_ns();
  const auto steps = static_cast<std::uint64_t>(facts.selection.steady.size());
  Finding finding;
  finding.verdict =
      say(facts,
          "Data goes from the GPU to the CPU and back, {} [time|times] [in {} steps] ({} both ways "
          "[per step]): the GPU computes nothing for {} [per step] ({}) meanwhile.",
          {count(found.trips), count(steps), bytes(facts.per_step(found.size_bytes)),
           ns(facts.per_step(total_ns)), ratio(total_ns, facts.wall.partition.wall_ns)});
  finding.at_stake_ns = facts.per_step(total_ns);
  finding.at_stake_ratio = wall_share(facts, total_ns);
  finding.waiting_ns = facts.per_step(found.lost.idle_ns);
  finding.arithmetic.push_back(say(
      facts,
      "copies alone {} + idle {} [per step], from the copy to the CPU to the next work after the "
      "copy back",
      {ns(facts.per_step(found.lost.copies_ns)), ns(facts.per_step(found.lost.idle_ns))}));
  finding.arithmetic.push_back(say(
      "a round trip: a copy to the CPU, then one of as many bytes (or of half or twice as many, "
      "in another type) to the GPU, before the thread launches a kernel"));
  Sentence down = say("to the CPU: {} in {}",
                      {bytes(bytes_of(facts, found.down)), ns(facts.trace->dur_ns(found.down))});
  add_line(facts, facts.links.launch_of[raw(found.down)], down);
  Sentence up = say("and back: {} in {}",
                    {bytes(bytes_of(facts, found.up)), ns(facts.trace->dur_ns(found.up))});
  add_line(facts, facts.links.launch_of[raw(found.up)], up);
  finding.evidence = {{found.down, std::move(down)}, {found.up, std::move(up)}};
  finding.try_next = {
      "do on the GPU what happens between .cpu() (.numpy(), .tolist()) and .to(device): the data "
      "then stays there",
      "pinned memory would make the copies faster, but does not remove them or the wait"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.trips;
  finding.sample_noun = "round trip";
  const std::int64_t copies_ns = facts.per_step(found.lost.copies_ns);
  const std::int64_t whole_ns = facts.per_step(total_ns);
  finding.explains = {{"host-sync", facts.per_step(found.lost.after_waits_ns)},
                      {"pageable-copy", copies_ns + facts.per_step(found.lost.in_copy_calls_ns)},
                      {"exposed-copy", copies_ns},
                      {"back-and-forth", copies_ns},
                      {"cpu-operators", whole_ns},
                      {"python-hole", facts.per_step(found.lost.quiet_ns)}};
  finding.brief = say(facts,
                      "Data goes from the GPU to the CPU and back, {} [time|times] [in {} "
                      "steps]",
                      {count(found.trips), count(steps)});
  finding.action = say("Keep it on the GPU: do there what happens between .cpu() and .to(device)");
  if (found.for_collectives * 2 > found.trips) tell_collectives(facts, found, finding);
  if (found.for_optimizer * 2 > found.trips) {
    finding.brief = say(facts,
                        "The optimizer works on the CPU: gradients go there and weights come back, "
                        "{} [time|times] [in {} steps]",
                        {count(found.trips), count(steps)});
    finding.action = say("Keep the optimizer on the GPU (fused=True), where its states fit");
    finding.try_next.insert(finding.try_next.begin(),
                            "give the optimizer the parameters on the GPU; states in fewer bits or "
                            "sharded states (FSDP, ZeRO) need less memory there");
  }
  return finding;
}

}  // namespace

extern constinit const Rule cpu_round_trip_rule = {
    .id = "cpu-round-trip",
    .question = "does data go from the GPU to the CPU and back?",
    .meant_by = "numpy copy",
    .order = 84,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_cpu_round_trip, tell_cpu_round_trip>,
};

}  // namespace lanescope::explain::rules
