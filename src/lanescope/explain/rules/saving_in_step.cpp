// torch.save in the steps. Of a view it saves all of the tensor that the view is cut from.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastSavingShare = 0.05;

// "torch/serialization.py(945): save"
bool is_save(std::string_view frame) {
  return frame.ends_with("): save") &&
         frame.find("torch/serialization.py(") != std::string_view::npos;
}

bool cuts(std::string_view op) {
  static constexpr std::array<std::string_view, 7> kCuts = {
      "aten::slice", "aten::select", "aten::narrow",      "aten::split",
      "aten::chunk", "aten::unbind", "aten::tensor_split"};
  return std::find(kCuts.begin(), kCuts.end(), op) != kCuts.end();
}

struct Saving {
  std::vector<SliceId> saves;  // frames, of one thread in order
  std::int64_t lost_ns = 0;
  std::int64_t bytes = 0;  // copied to the CPU in them
  SliceId cut =
      kNone<SliceId>;  // the call that cut the saved view out of a tensor of all these bytes
};

std::vector<SliceId> find_saves(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::vector<SliceId> saves;
  for (const SliceId id : slices_named(facts, is_save))
    if (trace.kind(id) == CategoryKind::kPythonFunction && inside(windows, trace.start_ns(id)))
      saves.push_back(id);
  return saves;
}

// The largest copy to the CPU in a save; 0: none. Adds to Saving::bytes.
std::int64_t largest_copy(const Facts& facts, SliceId save, Saving& found) {
  const Trace& trace = *facts.trace;
  std::int64_t largest = 0;
  for (const analysis::DeviceWork* work :
       steady_work_launched_in(facts, {{trace.start_ns(save), trace.end_ns(save)}}))
    if (trace.name(work->slice).starts_with("Memcpy DtoH")) {
      found.bytes += bytes_of(facts, work->slice);
      largest = std::max(largest, bytes_of(facts, work->slice));
    }
  return largest;
}

// The last operator before the save, if it cut a view out of a tensor of that size.
SliceId cut_before(const Facts& facts, const std::vector<CallSequence>& calls, SliceId save,
                   std::int64_t bytes) {
  const Trace& trace = *facts.trace;
  SliceId last = kNone<SliceId>;
  for (const CallSequence& sequence : calls)
    for (const SliceId op : sequence)
      if (trace.slices().track[raw(op)] == trace.slices().track[raw(save)] &&
          trace.end_ns(op) <= trace.start_ns(save) &&
          (last == kNone<SliceId> || trace.start_ns(op) > trace.start_ns(last)))
        last = op;
  if (last == kNone<SliceId> || !cuts(trace.name(last))) return kNone<SliceId>;
  const auto base = operator_inputs(trace, last).tensor(0);
  return base && static_cast<std::int64_t>(base->dense_bytes()) == bytes ? last : kNone<SliceId>;
}

std::optional<Saving> measure_saving_in_step(const Facts& facts) {
  Saving found;
  found.saves = find_saves(facts);
  // Less often than in every second step, it is what the step that took longer did.
  if (found.saves.empty() || found.saves.size() * 2 < facts.selection.steady.size())
    return std::nullopt;
  std::vector<Window> windows;
  for (const SliceId save : found.saves)
    windows.push_back({facts.trace->start_ns(save), facts.trace->end_ns(save)});
  windows = joined(std::move(windows));
  found.lost_ns = facts.main_device ? lost_in(facts, steady_parts(facts, windows)).total_ns()
                                    : total_length(windows);
  if (share_of(found.lost_ns, facts.steady_wall_ns()) < kLeastSavingShare) return std::nullopt;
  if (!facts.main_device) return found;
  const std::vector<CallSequence>& calls = call_sequences(facts);
  for (const SliceId save : found.saves)
    if (const std::int64_t bytes = largest_copy(facts, save, found);
        bytes > 0 && found.cut == kNone<SliceId>)
      found.cut = cut_before(facts, calls, save, bytes);
  return found;
}

// What was saved although the program had cut it off.
void tell_view(const Facts& facts, const Saving& found, std::int64_t bytes_of_save,
               Finding& finding) {
  const std::string_view cut = facts.trace->name(found.cut);
  finding.evidence.push_back({found.cut, say("cuts the view that is saved")});
  finding.arithmetic.push_back(say(
      "{} before the save takes a tensor of {}, and as many bytes are copied to save its result",
      {name(cut), bytes(bytes_of_save)}));
  finding.try_next.insert(finding.try_next.begin(),
                          "clone() the view before torch.save: of a view it saves all of the "
                          "storage, which is the whole tensor");
  finding.brief = say("torch.save of a view ({}) saves the whole tensor that it is a part of, {}",
                      {name(cut), bytes(bytes_of_save)});
  finding.action = say("clone() the view before torch.save; and save every n steps only");
}

Finding tell_saving_in_step(const Facts& facts, const Saving& found) {
  const auto saves = static_cast<std::uint64_t>(found.saves.size());
  Finding finding;
  finding.verdict = say(facts,
                        "torch.save is called {} [time|times] [in {} steps] and holds the work up "
                        "for {} [per step] ({}).",
                        {count(saves), count(step_count(facts)), ns(facts.per_step(found.lost_ns)),
                         ratio(found.lost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.lost_ns, saves, finding);
  if (facts.main_device)
    finding.arithmetic.push_back(
        say("counted: while torch.save runs, time in which the GPU is idle or only copies; {} are "
            "copied to the CPU for one save",
            {bytes(found.bytes / static_cast<std::int64_t>(saves))}));
  finding.evidence.push_back({found.saves.front(), say("the first of these calls")});
  finding.try_next = {
      "save every n steps, or at the end of an epoch",
      "copy the state into pinned memory with non_blocking=True and save it from another thread "
      "(torch.distributed.checkpoint.async_save does so)"};
  finding.brief = say(facts, "torch.save is called in the step, {} [time|times] [in {} steps]",
                      {count(saves), count(step_count(facts))});
  finding.action = say("Save every n steps, or in another thread, from a copy in pinned memory");
  for (const char* covered : {"pageable-copy", "host-sync", "python-hole", "exposed-copy"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  if (found.cut != kNone<SliceId>)
    tell_view(facts, found, found.bytes / static_cast<std::int64_t>(saves), finding);
  return finding;
}

}  // namespace

extern constinit const Rule saving_in_step_rule = {
    .id = "saving-in-step",
    .question = "does torch.save hold up the steps?",
    .meant_by = "checkpoint save disk storage view clone",
    .order = 252,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_saving_in_step, tell_saving_in_step>,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules
