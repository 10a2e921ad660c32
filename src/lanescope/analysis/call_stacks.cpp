#include "lanescope/analysis/call_stacks.h"

#include <array>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lanescope::analysis {
namespace {

constexpr std::uint32_t kNoEvent = TorchEvent::kNoEvent;
// A frame of torch's own plumbing that its tables leave out: (part of the path, part of the
// function).
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kHiddenFrames{{
    {"autograd/__init__", "_make_grads"},
    {"autograd/__init__", "backward"},
    {"torch/tensor", "backward"},
    {"_internal/common_utils", "prof_callable"},
    {"_internal/common_utils", "prof_func_call"},
    {"_internal/common_utils", "prof_meth_call"},
}};
constexpr std::size_t kMostFrames = 4096;  // a loop in the parent ids of a damaged file ends here

bool is_hidden(std::string_view frame) {
  for (const auto& [path, function] : kHiddenFrames)
    if (frame.find(path) != frame.npos && frame.find(function) != frame.npos) return true;
  return false;
}

class StackBuilder {
 public:
  StackBuilder(const Trace& trace, const TorchEvents& events)
      : trace_(trace), events_(events.events), names_(events.names) {}

  CallStacks run() {
    out_.stack_of.assign(events_.size(), 0);
    collect_python_frames();
    bool any = false, is_verbose = false;
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      if (events_[i].slice == kNone<SliceId>) continue;
      const auto text = trace_.slice_args(events_[i].slice).text(ArgKey::kCallStack);
      if (!text) continue;
      out_.stack_of[i] = from_text(*text);
      any = true;
      const std::vector<std::string>& frames = out_.stacks[out_.stack_of[i]];
      is_verbose = is_verbose || (!frames.empty() && python_names_.contains(frames.back()));
    }
    if (!any) return std::move(out_);  // recorded without verbose: torch shows no stacks at all
    // TorchScript operators have a "Call stack" in any case; one that ends in a Python frame tells
    // of verbose.
    for (std::uint32_t i = 0; is_verbose && i < events_.size(); ++i)
      if (events_[i].slice != kNone<SliceId> &&
          trace_.kind(events_[i].slice) == CategoryKind::kPythonFunction)
        out_.stack_of[i] = from_parents(events_[i].slice);
    give_backward_forward_stacks();
    return std::move(out_);
  }

 private:
  std::uint32_t intern(std::vector<std::string> frames) {
    const auto [it, added] =
        by_frames_.try_emplace(std::move(frames), static_cast<std::uint32_t>(out_.stacks.size()));
    if (added) {
      if (it->first.empty())
        it->second = 0;
      else
        out_.stacks.push_back(it->first);
    }
    return it->second;
  }

  std::uint32_t from_text(StringId id) {
    const auto [it, added] = by_text_.try_emplace(raw(id), 0);
    if (!added) return it->second;
    std::vector<std::string> frames;
    std::string_view rest = trace_.text(id);
    while (!rest.empty()) {
      const std::size_t end = rest.find(';');
      const std::string_view frame = rest.substr(0, end);
      if (!frame.empty() && !is_hidden(frame)) frames.emplace_back(frame);
      rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    }
    return it->second = intern(std::move(frames));
  }

  void collect_python_frames() {
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      if (trace_.kind(SliceId{i}) != CategoryKind::kPythonFunction) continue;
      python_names_.insert(std::string(trace_.name(SliceId{i})));
      if (const auto id = trace_.slice_args(SliceId{i}).integer(ArgKey::kPythonId))
        python_by_id_.emplace(*id, SliceId{i});
    }
  }

  std::uint32_t from_parents(SliceId slice) {
    std::vector<std::string> frames;
    for (std::size_t k = 0; k < kMostFrames; ++k) {
      const auto parent = trace_.slice_args(slice).integer(ArgKey::kPythonParentId);
      if (!parent) break;
      const auto it = python_by_id_.find(*parent);
      if (it == python_by_id_.end()) break;
      slice = it->second;
      if (!is_hidden(trace_.name(slice))) frames.emplace_back(trace_.name(slice));
    }
    return intern(std::move(frames));
  }

  // 0: not known, or a forward row.
  std::int64_t fwd_thread(const TorchEvent& event) const {
    if (event.slice == kNone<SliceId>) return 0;
    return trace_.slice_args(event.slice).integer(ArgKey::kFwdThreadId).value_or(0);
  }

  std::int64_t sequence_of(const TorchEvent& event) const {
    if (event.slice == kNone<SliceId>) return -1;
    return trace_.slice_args(event.slice).integer(ArgKey::kSequenceNumber).value_or(-1);
  }

  // The file does not say which rows have torch's BACKWARD_FUNCTION scope. They are what the
  // engine's own row of the same name encloses, and other rows that name a forward thread.
  bool is_backward(const TorchEvent& event) const {
    constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
    const std::string_view name = names_[event.name];
    if (event.parent != kNoEvent) {
      const std::string_view above = names_[events_[event.parent].name];
      if (above.starts_with(kEngine) && above.substr(kEngine.size()) == name) return true;
    }
    return fwd_thread(event) != 0 && !name.starts_with(kEngine);
  }

  // torch looks forward stacks up by (sequence number, logical thread). A file has logical numbers
  // of forward threads on backward rows only, so each such number stands for the track on which
  // most of its sequence numbers are found; a backward row that has no number (AccumulateGrad)
  // takes the commonest one, and -1 for its sequence number, as torch.
  void give_backward_forward_stacks() {
    std::vector<std::uint32_t> backward(events_.size(),
                                        kNoEvent);  // the innermost backward row at or above
    std::map<std::pair<std::int64_t, std::uint32_t>, std::uint32_t>
        forward;  // (sequence, track) -> first row's stack
    std::unordered_map<std::int64_t, std::uint32_t> track_of;
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      const TorchEvent& event = events_[i];
      if (event.is_removed || event.on_device) continue;
      if (is_backward(event))
        backward[i] = i;
      else if (event.parent != kNoEvent)
        backward[i] = backward[event.parent];
      if (backward[i] != kNoEvent) continue;
      const std::int64_t sequence = sequence_of(event);
      forward.try_emplace({sequence, event.thread}, out_.stack_of[i]);
      if (fwd_thread(event) == 0) track_of.try_emplace(sequence, event.thread);
    }
    std::map<std::int64_t, std::map<std::uint32_t, std::size_t>>
        votes;  // logical thread -> track -> voters; 0: everyone
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      if (backward[i] != i || sequence_of(events_[i]) < 0) continue;
      const auto it = track_of.find(sequence_of(events_[i]));
      if (it == track_of.end()) continue;
      ++votes[fwd_thread(events_[i])][it->second];
      ++votes[0][it->second];
    }
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      if (backward[i] == kNoEvent) continue;
      const TorchEvent& row = events_[backward[i]];
      std::pair<std::uint32_t, std::size_t> best{0, 0};
      for (const auto& candidate : votes[fwd_thread(row)])
        if (candidate.second > best.second) best = candidate;
      const auto it = forward.find({sequence_of(row), best.first});
      out_.stack_of[i] = best.second > 0 && it != forward.end() ? it->second : 0;
    }
  }

  const Trace& trace_;
  const std::vector<TorchEvent>& events_;
  const std::vector<std::string>& names_;
  CallStacks out_;
  std::map<std::vector<std::string>, std::uint32_t> by_frames_;
  std::unordered_map<std::uint32_t, std::uint32_t> by_text_;
  std::unordered_map<std::int64_t, SliceId> python_by_id_;
  std::unordered_set<std::string> python_names_;
};

}  // namespace

CallStacks build_call_stacks(const Trace& trace, const TorchEvents& events) {
  return StackBuilder(trace, events).run();
}

}  // namespace lanescope::analysis
