// Problem: one step of a model is thousands of slices, most of them the same few chains. Idea:
// slices of a thread are in preorder of their nesting, so one pass with a stack builds the tree.
// Each finished node folds into the sibling before it if both subtrees have the same names, so
// memory depends on the folded tree. Example: mm, mm, mm, add (each with one launch of one kernel)
// becomes mm x3 -> launch x3 -> kernel x3; add.
#include "lanescope/analysis/dispatch_tree.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "lanescope/analysis/close_names.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/base/sort_rows.h"

namespace lanescope::analysis {
namespace {

constexpr std::string_view kStepPrefix = "ProfilerStep#";
constexpr int kDeepest = 256;  // limits the recursion of folding, printing and destruction

std::int64_t median(std::vector<std::int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

class DispatchTreeBuilder {
 public:
  DispatchTreeBuilder(const Trace& trace, const DispatchTreeOptions& options)
      : trace_(trace), options_(options) {}

  Result<DispatchTree> run() {
    LANESCOPE_TRY_VOID(check());
    links_ = compute_launch_links(trace_, 0);
    nesting_ =
        compute_slice_nesting(trace_, {.python_frames = options_.python_frames, .threads = 0});
    for (const Step& each : trace_.steps()) tree_.steps.push_back(each.number);
    for (const TrackId track : thread_order()) add_thread(track);
    add_unlaunched();
    return std::move(tree_);
  }

 private:
  Result<void> check() {
    if (options_.max_depth < 1 || options_.max_depth > kDeepest)
      return Error{Errc::kInvalidArgument,
                   "the depth must be from 1 to 256, not " + std::to_string(options_.max_depth)};
    if (options_.step) LANESCOPE_TRY_VOID(find_step());
    if (!options_.op.empty()) LANESCOPE_TRY_VOID(find_op());
    return {};
  }

  Result<void> find_step() {
    for (const Step& each : trace_.steps())
      if (each.number == *options_.step) step_ = each.slice;
    if (step_ != kNone<SliceId>) return {};
    std::string message = "the trace has no step " + std::to_string(*options_.step);
    if (trace_.steps().empty())
      return Error{Errc::kInvalidArgument, message + "; it has no ProfilerStep ranges at all"};
    message += "; it has ";
    const std::size_t count = trace_.steps().size();
    for (std::size_t i = 0; i < count; ++i) {
      if (count > 12 && i == 5) {
        message += ", ...";
        i = count - 3;
        continue;
      }
      message += (i ? ", " : "") + std::to_string(trace_.steps()[i].number);
    }
    return Error{Errc::kInvalidArgument, message};
  }

  Result<void> find_op() {
    op_ = trace_.strings().find(options_.op);
    std::vector<bool> seen(trace_.strings().size(), false);
    std::vector<std::string_view> names;
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      const CategoryKind kind = trace_.kind(SliceId{i});
      if (!is_front_end(kind) && !is_api_call(kind) && kind != CategoryKind::kPythonFunction)
        continue;
      const StringId name = trace_.slices().name[i];
      if (name == op_) return {};
      if (!seen[raw(name)]) names.push_back(trace_.text(name));
      seen[raw(name)] = true;
    }
    std::string message =
        "the trace has no operator, annotation or API call named '" + options_.op + "'";
    const std::vector<std::string> close = find_close_names(options_.op, names);
    for (std::size_t i = 0; i < close.size(); ++i) message += (i ? ", " : "; closest: ") + close[i];
    return Error{Errc::kInvalidArgument, message};
  }

  std::vector<TrackId> thread_order() const {
    std::vector<TrackId> order;
    const SliceId lead = step_ != kNone<SliceId>  ? step_
                         : trace_.steps().empty() ? kNone<SliceId>
                                                  : trace_.steps().front().slice;
    if (lead != kNone<SliceId>) order.push_back(trace_.slices().track[raw(lead)]);
    for (std::uint32_t i = 0; i < trace_.tracks().size(); ++i)
      if (trace_.tracks()[i].kind == TrackKind::kThread &&
          (order.empty() || order.front() != TrackId{i}))
        order.push_back(TrackId{i});
    return order;
  }

  bool takes_part(std::uint32_t i) const { return nesting_.depth[i] != SliceNesting::kNotNested; }

  // Roots: the chosen step on the steps' thread, whole trees elsewhere, or subtrees with
  // the chosen name.
  bool is_root(std::uint32_t i) const {
    if (op_ != kNone<StringId>) return trace_.slices().name[i] == op_ && in_step(i);
    if (step_ == kNone<SliceId>) return nesting_.depth[i] == 0;
    if (trace_.slices().track[i] == trace_.slices().track[raw(step_)]) return i == raw(step_);
    return nesting_.depth[i] == 0 && in_step(i);
  }

  bool in_step(std::uint32_t i) const {
    if (step_ == kNone<SliceId>) return true;
    const std::int64_t start = trace_.start_ns(SliceId{i});
    return start >= trace_.start_ns(step_) && start < trace_.end_ns(step_);
  }

  void add_thread(TrackId id) {
    const Track& track = trace_.track(id);
    DispatchThread thread;
    thread.track = id;
    thread.name = trace_.text(track.name);
    if (thread.name.empty())
      thread.name = "thread " + (track.tid.is_text ? std::string(trace_.text(track.tid.text))
                                                   : std::to_string(track.tid.number));
    const std::uint32_t last = track.first_slice + track.slice_count;
    for (std::uint32_t i = track.first_slice; i < last;) {
      if (!takes_part(i) || !is_root(i))
        ++i;
      else
        i = add_root(i, last, thread.roots);
    }
    if (thread.roots.empty()) return;
    for (DispatchNode& root : thread.roots) finish(root);
    tree_.threads.push_back(std::move(thread));
  }

  // Builds the subtree of slice `root`; returns the first slice after it.
  std::uint32_t add_root(std::uint32_t root, std::uint32_t last, std::vector<DispatchNode>& roots) {
    struct Open {
      DispatchNode node;
      std::uint32_t slice;
      std::int64_t free_from_ns;  // where the next child's gap begins
    };
    std::vector<Open> open;
    const auto close = [&] {
      Open done = std::move(open.back());
      open.pop_back();
      add_device_work(done.slice, done.node);
      if (open.empty()) {
        append(roots, std::move(done.node));
      } else {
        open.back().node.device_ns += done.node.device_ns;
        append(open.back().node.children, std::move(done.node));
      }
    };
    open.push_back({node_of(root), root, trace_.start_ns(SliceId{root})});
    std::uint32_t i = root + 1;
    for (; i < last; ++i) {
      if (!takes_part(i)) continue;
      if (nesting_.depth[i] <= nesting_.depth[root]) break;
      const std::size_t level = nesting_.depth[i] - nesting_.depth[root];
      if (level >= static_cast<std::size_t>(options_.max_depth)) {
        ++open.back().node.hidden_count;
        open.back().node.device_ns += launched_ns(i);
        continue;
      }
      while (open.size() > level) close();
      DispatchNode node = node_of(i);
      node.gaps_.push_back(trace_.start_ns(SliceId{i}) - open.back().free_from_ns);
      open.back().free_from_ns = trace_.end_ns(SliceId{i});
      open.push_back({std::move(node), i, trace_.start_ns(SliceId{i})});
    }
    while (!open.empty()) close();
    return i;
  }

  DispatchNode node_of(std::uint32_t i) const {
    const SliceId id{i};
    DispatchNode node;
    node.name = trace_.name(id);
    node.kind = trace_.kind(id);
    node.first = id;
    node.start_ns = trace_.start_ns(id) - origin_of(id);
    node.total_ns = trace_.dur_ns(id);
    node.self_ns = nesting_.self_ns[i];
    node.totals_.push_back(node.total_ns);
    return node;
  }

  // Start of the step around the slice's start, on any thread; outside of steps,
  // the window's start.
  std::int64_t origin_of(SliceId id) const {
    const auto steps = trace_.steps();
    const std::int64_t start = trace_.start_ns(id);
    const auto after = std::upper_bound(
        steps.begin(), steps.end(), start,
        [&](std::int64_t time, const Step& step) { return time < trace_.start_ns(step.slice); });
    if (after == steps.begin()) return trace_.window_start_ns();
    const SliceId step = std::prev(after)->slice;
    return start < trace_.end_ns(step) || id == step ? trace_.start_ns(step)
                                                     : trace_.window_start_ns();
  }

  std::int64_t launched_ns(std::uint32_t i) const {
    std::int64_t sum = 0;
    for (const SliceId work : links_.launched_by(SliceId{i}))
      if (is_device_work(trace_.kind(work))) sum += trace_.dur_ns(work);
    return sum;
  }

  void add_device_work(std::uint32_t i, DispatchNode& node) const {
    for (const SliceId work : links_.launched_by(SliceId{i})) {
      if (!is_device_work(trace_.kind(work))) continue;
      DispatchNode child;
      child.name = trace_.name(work);
      child.kind = trace_.kind(work);
      child.first = work;
      child.start_ns = trace_.start_ns(work) - origin_of(SliceId{i});
      child.total_ns = child.device_ns = trace_.dur_ns(work);
      child.totals_.push_back(child.total_ns);
      child.queues_.push_back(trace_.start_ns(work) - trace_.start_ns(SliceId{i}));
      child.stream = trace_.track(work).stream;
      node.device_ns += child.device_ns;
      append(node.children, std::move(child));
    }
  }

  static bool same_name(const DispatchNode& a, const DispatchNode& b) {
    if (a.name == b.name) return true;
    const auto is_step = [](std::string_view name) {
      return name.starts_with(kStepPrefix) || name == "ProfilerStep*";
    };
    return is_step(a.name) && is_step(b.name);
  }

  static bool same_tree(const DispatchNode& a, const DispatchNode& b) {
    if (a.kind != b.kind || a.stream != b.stream ||
        a.hidden_count * b.count != b.hidden_count * a.count ||
        a.children.size() != b.children.size() || !same_name(a, b))
      return false;
    for (std::size_t i = 0; i < a.children.size(); ++i)
      if (a.children[i].per_parent_ != b.children[i].per_parent_ ||
          !same_tree(a.children[i], b.children[i]))
        return false;
    return true;
  }

  void append(std::vector<DispatchNode>& siblings, DispatchNode node) const {
    if (options_.fold && !siblings.empty() && same_tree(siblings.back(), node)) {
      merge(siblings.back(), std::move(node));
      ++siblings.back().per_parent_;
    } else {
      siblings.push_back(std::move(node));
    }
  }

  static void merge(DispatchNode& into, DispatchNode&& from) {
    if (into.name != from.name) into.name = "ProfilerStep*";
    into.count += from.count;
    into.total_ns += from.total_ns;
    into.self_ns += from.self_ns;
    into.device_ns += from.device_ns;
    into.hidden_count += from.hidden_count;
    into.totals_.insert(into.totals_.end(), from.totals_.begin(), from.totals_.end());
    into.gaps_.insert(into.gaps_.end(), from.gaps_.begin(), from.gaps_.end());
    into.queues_.insert(into.queues_.end(), from.queues_.begin(), from.queues_.end());
    for (std::size_t i = 0; i < into.children.size(); ++i)
      merge(into.children[i], std::move(from.children[i]));
  }

  static void finish(DispatchNode& node) {
    node.median_total_ns = median(node.totals_);
    if (!node.gaps_.empty()) node.median_gap_ns = median(node.gaps_);
    if (!node.queues_.empty()) node.median_queue_ns = median(node.queues_);
    for (auto* values : {&node.totals_, &node.gaps_, &node.queues_})
      std::vector<std::int64_t>().swap(*values);
    for (DispatchNode& child : node.children) finish(child);
  }

  void add_unlaunched() {
    if (op_ != kNone<StringId>) return;  // nothing ties such work to an operator
    std::map<std::uint32_t, UnlaunchedWork> by_name;
    for (std::uint32_t i = 0; i < trace_.slices().size(); ++i) {
      if (!is_device_work(trace_.kind(SliceId{i})) || links_.launch_of[i] != kNone<SliceId> ||
          !in_step(i))
        continue;
      UnlaunchedWork& work = by_name[raw(trace_.slices().name[i])];
      work.name = trace_.name(SliceId{i});
      ++work.count;
      work.total_ns += trace_.dur_ns(SliceId{i});
    }
    for (auto& [name, work] : by_name) tree_.unlaunched.push_back(std::move(work));
    sort_rows(
        tree_.unlaunched.begin(), tree_.unlaunched.end(),
        [](const UnlaunchedWork& a, const UnlaunchedWork& b) { return a.total_ns > b.total_ns; });
  }

  const Trace& trace_;
  const DispatchTreeOptions& options_;
  LaunchLinks links_;
  SliceNesting nesting_;
  DispatchTree tree_;
  SliceId step_ = kNone<SliceId>;
  StringId op_ = kNone<StringId>;
};

Result<DispatchTree> compute_dispatch_tree(const Trace& trace, const DispatchTreeOptions& options) {
  return DispatchTreeBuilder(trace, options).run();
}

}  // namespace lanescope::analysis
