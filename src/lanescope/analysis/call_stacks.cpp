#include "lanescope/analysis/call_stacks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lanescope::analysis {
namespace {

// Frames inside torch that its tables leave out: (part of the path, part of the function).
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
      : trace_(trace), list_(events), events_(events.events), names_(events.names) {}

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
    if (!any) return std::move(out_);  // recorded without verbose: torch shows no stacks
    // TorchScript operators always have a "Call stack"; one that ends in a Python frame means
    // verbose.
    if (is_verbose || (list_.is_own && list_.has_python_frames)) copy_parents_to_frames();
    if (is_verbose || list_.is_own) {
      link_rows();
      if (list_.is_own) find_forward_tracks();
      const std::vector<std::uint32_t> at_row = python_stacks_at_rows();
      if (list_.is_own && list_.style == TableStyle::kTorch) use_frames_as_stacks(at_row);
      copy_stacks_to_linked_rows(at_row);
    }
    copy_forward_stacks_to_backward();
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

  // The frames around a Python frame; with `itself`, that frame too.
  std::uint32_t from_parents(SliceId slice, bool itself = false) {
    std::vector<std::string> frames;
    if (itself && !is_hidden(trace_.name(slice))) frames.emplace_back(trace_.name(slice));
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

  void copy_parents_to_frames() {
    for (std::uint32_t i = 0; i < events_.size(); ++i)
      if (events_[i].slice != kNone<SliceId> &&
          trace_.kind(events_[i].slice) == CategoryKind::kPythonFunction)
        out_.stack_of[i] = from_parents(events_[i].slice);
  }

  // lanescope's own "Call stack" has the lines of the calls. torch's stacks are made of Python
  // frames, so recorded frames replace the lines. With module frames alone there is no call stack.
  void use_frames_as_stacks(const std::vector<std::uint32_t>& at_row) {
    for (std::uint32_t i = 0; i < events_.size(); ++i)
      if (at_row[i] != 0 && (out_.stack_of[i] != 0 || is_called_elsewhere_[i]))
        out_.stack_of[i] = at_row[i];
  }

  // A slice that Kineto recorded has no stack in the file. torch gives it the Python frames of its
  // parent: for device work the launch call, else the operator; for a call the operator. Without a
  // parent, also for annotations on the device, it takes the place of the main thread at its begin,
  // where that thread only happens to be. In lanescope's own traces an annotation on the device has
  // the stack of the annotation.
  void copy_stacks_to_linked_rows(const std::vector<std::uint32_t>& at_row) {
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      if (!is_from_kineto(i)) continue;
      std::uint32_t of = i;
      while (parent_row_[of] != TorchEvent::kNoEvent) of = parent_row_[of];
      out_.stack_of[i] = of != i && !is_from_kineto(of) ? python_stack(of, at_row) : at_row[of];
    }
  }

  // Sets parent_row_ of rows that Kineto recorded: the call of device work, else the operator.
  void link_rows() {
    std::unordered_map<std::int64_t, std::uint32_t> row_by_external_id, call_by_correlation;
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      if (events_[i].slice == kNone<SliceId>) continue;
      const CategoryKind kind = trace_.kind(events_[i].slice);
      if (is_front_end(kind))
        row_by_external_id.try_emplace(integer(i, ArgKey::kExternalId), i);
      else if (is_api_call(kind))
        call_by_correlation.try_emplace(integer(i, ArgKey::kCorrelation), i);
    }
    const auto find = [](const auto& rows, std::int64_t id) {
      const auto it = id == 0 ? rows.end() : rows.find(id);
      return it == rows.end() ? TorchEvent::kNoEvent : it->second;
    };
    parent_row_.assign(events_.size(), TorchEvent::kNoEvent);
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      if (!is_from_kineto(i)) continue;
      const bool is_annotation = trace_.kind(events_[i].slice) == CategoryKind::kGpuUserAnnotation;
      if (is_annotation && !list_.is_own) continue;
      if (events_[i].on_device && !is_annotation)
        parent_row_[i] = find(call_by_correlation, integer(i, ArgKey::kCorrelation));
      if (parent_row_[i] == TorchEvent::kNoEvent)
        parent_row_[i] = find(row_by_external_id, integer(i, ArgKey::kExternalId));
    }
  }

  // True: neither torch nor Python's tracer recorded the row.
  bool is_from_kineto(std::uint32_t i) const {
    if (events_[i].slice == kNone<SliceId>) return false;
    const CategoryKind kind = trace_.kind(events_[i].slice);
    return !is_front_end(kind) && kind != CategoryKind::kPythonFunction;
  }

  // An operator's stack. A TorchScript operator has TorchScript's stack instead, so take Python's
  // at that moment.
  std::uint32_t python_stack(std::uint32_t i, const std::vector<std::uint32_t>& at_row) const {
    const std::vector<std::string>& frames = out_.stacks[out_.stack_of[i]];
    const bool is_python = frames.empty() || list_.is_own || python_names_.contains(frames.back());
    return is_python ? out_.stack_of[i] : at_row[i];
  }

  // An entry of torch's stack for a thread.
  struct Node {
    std::int64_t start_ns = 0, end_ns = 0;
    std::uint32_t track = 0;
    std::uint32_t row = TorchEvent::kNoEvent;  // none: a Python frame
    SliceId frame = kNone<SliceId>;
    std::uint32_t parent = TorchEvent::kNoEvent;  // a node
    SliceId python = kNone<SliceId>;              // the innermost frame at or above
    bool is_finished = false;
  };

  std::vector<Node> nodes_in_order() const {
    std::vector<Node> nodes;
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      const TorchEvent& event = events_[i];
      if (event.slice == kNone<SliceId> || parent_row_[i] != TorchEvent::kNoEvent ||
          trace_.kind(event.slice) == CategoryKind::kPythonFunction)
        continue;
      const bool is_lost = is_from_kineto(i) && list_.main_track != kNone<TrackId>;
      nodes.push_back(
          {event.start_ns, event.end_ns, is_lost ? raw(list_.main_track) : event.thread, i});
    }
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i)
      if (const SliceId id{i}; trace_.kind(id) == CategoryKind::kPythonFunction)
        nodes.push_back({trace_.start_ns(id), trace_.end_ns(id), raw(trace_.slices().track[i]),
                         TorchEvent::kNoEvent, id});
    std::stable_sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    return nodes;
  }

  // The Python stack at the start of each row, as torch finds it: everything is pushed on its
  // thread's stack, and its end pops it with all that came after it. So a call of another thread
  // that ends within a frame of the main thread closes that frame early. In lanescope's own traces
  // only frames close frames. A backward row on a thread without open frames was called from where
  // its forward thread is: autograd runs the nodes of a GPU on a thread of their own. Rows of nodes
  // that gather gradients (AccumulateGrad) name no forward thread. If the recording has one only, and
  // it is in run_backward, they were called from there.
  std::vector<std::uint32_t> python_stacks_at_rows() {
    std::vector<Node> nodes = nodes_in_order();
    std::unordered_map<std::uint32_t, std::uint32_t> top;       // node by track
    std::unordered_map<std::uint32_t, std::uint32_t> stack_in;  // by the innermost frame
    using End = std::pair<std::int64_t, std::uint32_t>;
    std::priority_queue<End, std::vector<End>, std::greater<>> ends;
    std::vector<std::uint32_t> at_row(events_.size(), 0);
    is_called_elsewhere_.assign(events_.size(), false);
    const auto pop = [&](std::uint32_t ended) {
      if (nodes[ended].is_finished) return;
      std::uint32_t& open = top.at(nodes[ended].track);
      for (; open != ended; open = nodes[open].parent) nodes[open].is_finished = true;
      nodes[ended].is_finished = true;
      open = nodes[ended].parent;
    };
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      Node& node = nodes[n];
      for (; !ends.empty() && ends.top().first < node.start_ns; ends.pop()) pop(ends.top().second);
      std::uint32_t& open = top.try_emplace(node.track, TorchEvent::kNoEvent).first->second;
      node.parent = open;
      SliceId around = open == TorchEvent::kNoEvent ? kNone<SliceId> : nodes[open].python;
      if (list_.is_own && around == kNone<SliceId> && node.row != TorchEvent::kNoEvent) {
        const bool is_unnamed = is_node_without_thread(events_[node.row]);
        const auto caller =
            top.find(is_unnamed ? only_forward_track() : forward_track(events_[node.row]));
        if (caller != top.end() && caller->second != TorchEvent::kNoEvent) {
          around = nodes[caller->second].python;
          if (is_unnamed && !is_run_backward(around)) around = kNone<SliceId>;
          is_called_elsewhere_[node.row] = around != kNone<SliceId>;
        }
      }
      node.python = node.row == TorchEvent::kNoEvent ? node.frame : around;
      if (node.row != TorchEvent::kNoEvent && around != kNone<SliceId>) {
        const auto [it, added] = stack_in.try_emplace(raw(around), 0);
        if (added) it->second = from_parents(around, true);
        at_row[node.row] = it->second;
      }
      if (node.end_ns <= node.start_ns || (list_.is_own && node.row != TorchEvent::kNoEvent))
        continue;
      open = n;
      ends.emplace(node.end_ns, n);
    }
    for (std::uint32_t i = 0; i < events_.size(); ++i) {  // parents come first
      const std::uint32_t parent = events_[i].parent;
      if (at_row[i] != 0 || parent == TorchEvent::kNoEvent || !is_called_elsewhere_[parent])
        continue;
      at_row[i] = at_row[parent];
      is_called_elsewhere_[i] = true;
    }
    return at_row;
  }

  std::int64_t integer(std::uint32_t i, ArgKey key) const {
    return trace_.slice_args(events_[i].slice).integer(key).value_or(0);
  }

  static constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";

  bool is_node_without_thread(const TorchEvent& event) const {
    return fwd_thread(event) == 0 && std::string_view(names_[event.name]).starts_with(kEngine);
  }

  bool is_run_backward(SliceId frame) const {
    return frame != kNone<SliceId> &&
           trace_.name(frame).starts_with("<built-in method run_backward");
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

  // The file does not say which rows have torch's BACKWARD_FUNCTION scope. They are the rows inside
  // the engine's row of the same name, and other rows with a forward thread.
  bool is_backward(const TorchEvent& event) const {
    const std::string_view name = names_[event.name];
    if (event.parent != TorchEvent::kNoEvent) {
      const std::string_view above = names_[events_[event.parent].name];
      if (above.starts_with(kEngine) && above.substr(kEngine.size()) == name) return true;
    }
    return fwd_thread(event) != 0 && !name.starts_with(kEngine);
  }

  // A file has logical numbers of forward threads only on backward rows, so each number means the
  // track that has most of its sequence numbers. Fills backward_ and forward_tracks_.
  void find_forward_tracks() {
    if (!backward_.empty()) return;
    backward_.assign(events_.size(), TorchEvent::kNoEvent);
    std::unordered_map<std::int64_t, std::uint32_t> track_of;
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      const TorchEvent& event = events_[i];
      if (event.is_removed || event.on_device) continue;
      if (is_backward(event))
        backward_[i] = i;
      else if (event.parent != TorchEvent::kNoEvent)
        backward_[i] = backward_[event.parent];
      if (backward_[i] == TorchEvent::kNoEvent && fwd_thread(event) == 0)
        track_of.try_emplace(sequence_of(event), event.thread);
    }
    std::map<std::int64_t, std::map<std::uint32_t, std::size_t>>
        votes;  // logical thread -> track -> voters
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      if (backward_[i] != i || sequence_of(events_[i]) < 0 || fwd_thread(events_[i]) == 0) continue;
      const auto it = track_of.find(sequence_of(events_[i]));
      if (it != track_of.end()) ++votes[fwd_thread(events_[i])][it->second];
    }
    for (const auto& [thread, tracks] : votes) {
      std::size_t most = 0;
      for (const auto& [track, count] : tracks)
        if (count > most) {
          most = count;
          forward_tracks_[thread] = track;
        }
    }
  }

  // kNoTrack: not a backward row, or not known.
  static constexpr std::uint32_t kNoTrack = ~std::uint32_t{0};
  std::uint32_t forward_track(const TorchEvent& event) const {
    const std::int64_t thread = fwd_thread(event);
    const auto it = thread == 0 ? forward_tracks_.end() : forward_tracks_.find(thread);
    return it == forward_tracks_.end() ? kNoTrack : it->second;
  }

  // kNoTrack: none or several.
  std::uint32_t only_forward_track() const {
    std::uint32_t only = kNoTrack;
    for (const auto& [thread, track] : forward_tracks_) {
      if (only != kNoTrack && only != track) return kNoTrack;
      only = track;
    }
    return only;
  }

  // torch finds forward stacks by (sequence number, logical thread). A backward row without a number
  // (AccumulateGrad) finds nothing: torch searches thread 0, but numbers threads from 1.
  void copy_forward_stacks_to_backward() {
    find_forward_tracks();
    std::map<std::pair<std::int64_t, std::uint32_t>, std::uint32_t>
        forward;  // (sequence, track) -> first row's stack
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      const TorchEvent& event = events_[i];
      if (event.is_removed || event.on_device || backward_[i] != TorchEvent::kNoEvent) continue;
      forward.try_emplace({sequence_of(event), event.thread}, out_.stack_of[i]);
    }
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      if (backward_[i] == TorchEvent::kNoEvent) continue;
      const TorchEvent& row = events_[backward_[i]];
      const auto it = forward.find({sequence_of(row), forward_track(row)});
      out_.stack_of[i] = it != forward.end() ? it->second : 0;
    }
  }

  const Trace& trace_;
  const TorchEvents& list_;
  const std::vector<TorchEvent>& events_;
  const std::vector<std::string>& names_;
  CallStacks out_;
  std::map<std::vector<std::string>, std::uint32_t> by_frames_;
  std::unordered_map<std::uint32_t, std::uint32_t> by_text_;
  std::unordered_map<std::int64_t, SliceId> python_by_id_;
  std::unordered_set<std::string> python_names_;
  std::vector<std::uint32_t> parent_row_;  // for Kineto's rows: the call or operator
  std::vector<bool> is_called_elsewhere_;  // the frames around it are those of another thread
  std::vector<std::uint32_t> backward_;    // the innermost backward row at or above
  std::unordered_map<std::int64_t, std::uint32_t> forward_tracks_;  // by torch's number of a thread
};

}  // namespace

CallStacks build_call_stacks(const Trace& trace, const TorchEvents& events) {
  return StackBuilder(trace, events).run();
}

}  // namespace lanescope::analysis
