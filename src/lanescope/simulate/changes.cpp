#include "lanescope/simulate/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_set>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/duration.h"

namespace lanescope::simulate {
namespace {

// What an event costs the program that records it, in microseconds: all of the recording divided by
// the number of events. Fitted to programs that were also timed without a profiler:
// docs/measurements/whatif.md has the fit and its error.
constexpr double kTorchEventUs = 5.5;
constexpr double kOwnEventUs = 5.0;

constexpr char kKinds[] =
    "'speed NAME 2x', 'cpu 1.5x', 'remove NAME', 'remove-sync [PATTERN]', 'no-profiler [US]', "
    "'cuda-graph', 'pin [GB/S]' or 'overlap-copies'";

Error wrong(std::string_view found, std::string_view expected) {
  return {Errc::kInvalidArgument, fmt::format("expected {}; found '{}'", expected, found)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "2x": 2. Nothing: not a factor from 0.01 to 1000.
std::optional<double> factor_of(std::string_view text) {
  const std::optional<double> value = take_decimal(&text);
  if (!value || text != "x" || *value < 0.01 || *value > 1000) return std::nullopt;
  return value;
}

// "50", "50GB/s" or "50 GB/s" with that unit.
std::optional<double> number_of(std::string_view text, std::string_view unit) {
  const std::optional<double> value = take_decimal(&text);
  text = trimmed(text);
  if (!value || (!text.empty() && text != unit)) return std::nullopt;
  return value;
}

Result<Change> parse_speed(Change change, std::string_view rest) {
  const std::size_t space = rest.find_last_of(' ');
  const auto factor =
      space == std::string_view::npos ? std::nullopt : factor_of(rest.substr(space + 1));
  if (!factor)
    return wrong(change.text, "'speed NAME 2x': a kernel or operator and how many times faster");
  change.name = trimmed(rest.substr(0, space));
  change.factor = *factor;
  return change;
}

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

// Which names fit: equal ones if there are any, else those that contain the pattern.
class NamePattern {
 public:
  NamePattern(const Trace& trace, const std::string& pattern) {
    std::unordered_set<std::uint32_t> seen;
    for (std::size_t i = 0; i < trace.slices().size(); ++i) {
      const StringId name = trace.slices().name[i];
      if (!seen.insert(raw(name)).second) continue;
      const std::string_view text = trace.text(name);
      if (text == pattern) equal_.insert(raw(name));
      if (contains(text, pattern)) close_.insert(raw(name));
    }
  }
  bool fits(const Trace& trace, SliceId slice) const {
    const std::uint32_t name = raw(trace.slices().name[raw(slice)]);
    return equal_.empty() ? close_.contains(name) : equal_.contains(name);
  }

 private:
  std::unordered_set<std::uint32_t> equal_, close_;
};

class Changer {
 public:
  Changer(const StepGraph& graph, const analysis::SliceNesting& nesting, const Change& change,
          std::vector<Edge>& edges)
      : graph_(graph), trace_(*graph.trace), nesting_(nesting), change_(change), edges_(edges) {}

  Result<Applied> run() {
    switch (change_.kind) {
      case ChangeKind::kSpeed:
        speed();
        break;
      case ChangeKind::kCpu:
        scale_host();
        break;
      case ChangeKind::kRemove:
        remove();
        break;
      case ChangeKind::kRemoveSync:
        remove_sync();
        break;
      case ChangeKind::kNoProfiler:
        no_profiler();
        break;
      case ChangeKind::kCudaGraph:
        if (auto refused = cuda_graph()) return *std::move(refused);
        break;
      case ChangeKind::kPin:
        pin();
        break;
      case ChangeKind::kOverlapCopies:
        overlap_copies();
        break;
    }
    if (applied_.count == 0) return nothing_fits();
    return std::move(applied_);
  }

 private:
  Error nothing_fits() const {
    const char* expected = "something in the trace that it changes";
    switch (change_.kind) {
      case ChangeKind::kSpeed:
        expected = "a kernel or operator of that name";
        break;
      case ChangeKind::kRemove:
        expected = "a kernel, operator or range of that name";
        break;
      case ChangeKind::kRemoveSync:
        expected = "a call that waits for the GPU";
        break;
      case ChangeKind::kPin:
        expected = "copies between pageable memory and the GPU";
        break;
      case ChangeKind::kOverlapCopies:
        expected = "copies between CPU and GPU";
        break;
      default:
        break;
    }
    return {Errc::kInvalidArgument,
            fmt::format("'{}' expects {}; found none. `lanescope describe --trace TRACE` lists "
                        "kernels, with --events all other names",
                        change_.text, expected)};
  }

  static bool is_host(const Edge& edge) {
    return edge.kind == EdgeKind::kHost || edge.kind == EdgeKind::kHandOver;
  }
  static void scale(Edge& edge, double by) {
    edge.weight_ns = static_cast<std::int64_t>(static_cast<double>(edge.weight_ns) * by);
    edge.unexplained_ns = static_cast<std::int64_t>(static_cast<double>(edge.unexplained_ns) * by);
  }
  static void forget_slack(Edge& edge) {
    edge.weight_ns -= edge.unexplained_ns;
    edge.unexplained_ns = 0;
  }

  // Is the slice, or one around it, of that name?
  std::vector<bool> inside(const NamePattern& pattern) const {
    std::vector<bool> fits(trace_.slices().size());
    for (std::uint32_t i = 0; i < fits.size(); ++i) {
      const SliceId parent = nesting_.parent[i];
      fits[i] = pattern.fits(trace_, SliceId{i}) || (parent != kNone<SliceId> && fits[raw(parent)]);
      if (fits[i] || parent != kNone<SliceId>) continue;
      if (is_api_call(trace_.kind(SliceId{i})))
        if (const SliceId op = graph_.links->op_of[i]; op != kNone<SliceId> && raw(op) < i)
          fits[i] = fits[raw(op)];
    }
    return fits;
  }
  bool work_fits(const GpuWork& work, const std::vector<bool>& fits) const {
    if (fits[raw(work.slice)]) return true;
    const SliceId op = graph_.links->op_of[raw(work.slice)];
    return (work.launch != kNone<SliceId> && fits[raw(work.launch)]) ||
           (op != kNone<SliceId> && fits[raw(op)]);
  }

  void speed() {
    const std::vector<bool> fits = inside(NamePattern(trace_, change_.name));
    for (const GpuWork& work : graph_.works) {
      if (work.work_edge == kNoIndex || !work_fits(work, fits)) continue;
      scale(edges_[work.work_edge], 1 / change_.factor);
      ++applied_.count;
    }
    if (applied_.count > 0) return;
    for (Edge& edge : edges_) {
      if (edge.kind != EdgeKind::kHost || edge.owner == kNone<SliceId> || !fits[raw(edge.owner)])
        continue;
      scale(edge, 1 / change_.factor);
      ++applied_.count;
    }
    if (applied_.count > 0)
      applied_.notes.push_back(
          fmt::format("no GPU work was launched in '{}', so its CPU time changes", change_.name));
  }

  void scale_host() {
    for (Edge& edge : edges_) {
      if (!is_host(edge)) continue;
      scale(edge, 1 / change_.factor);
      ++applied_.count;
    }
  }

  void remove() {
    const std::vector<bool> inside_it = inside(NamePattern(trace_, change_.name));
    std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> of_launch;  // removed, all
    for (const GpuWork& work : graph_.works) {
      const bool fits = work_fits(work, inside_it);
      if (work.launch != kNone<SliceId>) {
        auto& [removed, all] = of_launch[raw(work.launch)];
        ++all;
        removed += fits;
      }
      if (!fits || work.work_edge == kNoIndex) continue;
      edges_[work.work_edge].weight_ns = 0;
      if (work.launch_edge != kNoIndex && work.stream_edge != kNoIndex)
        edges_[work.launch_edge].dropped = true;
      if (work.stream_edge != kNoIndex)
        edges_[work.stream_edge].weight_ns = edges_[work.stream_edge].unexplained_ns = 0;
      ++applied_.count;
    }
    for (Edge& edge : edges_) {
      if (edge.kind != EdgeKind::kHost || edge.owner == kNone<SliceId>) continue;
      const auto launch = of_launch.find(raw(edge.owner));
      const bool is_inside = inside_it[raw(edge.owner)];
      applied_.count += is_inside;
      if (is_inside || (launch != of_launch.end() && launch->second.first == launch->second.second))
        edge.weight_ns = 0;
    }
    if (applied_.count > 0)
      applied_.notes.push_back(
          "it is gone with its launch calls and all that it does on the GPU; operators around it "
          "keep "
          "their own CPU time");
  }

  static bool is_to_device(std::string_view name) {
    return name.find("HtoD") != std::string_view::npos ||
           name.find("HostToDevice") != std::string_view::npos;
  }
  bool waits_for_input(const HostWait& wait) const {
    return trace_.api_call(wait.call).does(api_effect::kCopies) &&
           is_to_device(trace_.name(graph_.works[wait.work].slice));
  }

  void remove_sync() {
    std::vector<bool> fits(trace_.slices().size(), true);
    if (!change_.name.empty()) fits = inside(NamePattern(trace_, change_.name));
    std::unordered_set<std::uint32_t> gone;
    for (const HostWait& wait : graph_.waits) {
      if (!fits[raw(wait.call)] || (change_.name.empty() && waits_for_input(wait))) continue;
      edges_[wait.wait_edge].dropped = true;
      if (!trace_.api_call(wait.call).does(api_effect::kCopies)) gone.insert(raw(wait.call));
      ++applied_.count;
    }
    for (Edge& edge : edges_)
      if (edge.kind == EdgeKind::kHost && edge.owner != kNone<SliceId> &&
          gone.contains(raw(edge.owner)))
        edge.weight_ns = 0;
    if (applied_.count > 0)
      applied_.notes.push_back(
          "the CPU no longer waits; the copies and operators around the waits still run. A program "
          "that needs the value on the CPU cannot do without the wait");
  }

  void no_profiler() {
    const bool own = trace_.metadata_json("lanescope").has_value();
    const double cost_us = change_.number.value_or(own ? kOwnEventUs : kTorchEventUs);
    const auto half_ns = static_cast<std::int64_t>(cost_us * 500);
    for (Edge& edge : edges_) {
      if (edge.kind != EdgeKind::kHost && edge.kind != EdgeKind::kHandOver) continue;
      edge.weight_ns = std::max<std::int64_t>(edge.weight_ns - half_ns, 0);
      ++applied_.count;
    }
    applied_.notes.push_back(
        fmt::format("each recorded event is taken to cost the program {:.1f} us{}", cost_us,
                    change_.number ? ""
                                   : ", fitted to measured programs, of which half came within 14 "
                                     "% (docs/measurements/whatif.md)"));
  }

  // Of the calls between a step's first and last launch only the first remains.
  std::optional<Error> cuda_graph() {
    struct Span {
      std::int64_t from_ns, to_ns;
      SliceId first;
    };
    std::vector<Span> spans;
    for (const StepBoundaries& step : graph_.steps) {
      Span span{0, 0, kNone<SliceId>};
      for (std::uint32_t i = step.begin.launched_count; i < step.end.launched_count; ++i) {
        const SliceId call = graph_.works[graph_.by_launch[i]].launch;
        if (call == kNone<SliceId>) continue;
        if (span.first == kNone<SliceId>) span = {trace_.start_ns(call), 0, call};
        span.to_ns = std::max(span.to_ns, trace_.end_ns(call));
        if (call != span.first && step.steady) ++applied_.count;
      }
      if (span.first != kNone<SliceId>) spans.push_back(span);
    }
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.from_ns < b.from_ns; });
    const auto span_of = [&](std::int64_t time) -> const Span* {
      const auto after = std::upper_bound(
          spans.begin(), spans.end(), time,
          [](std::int64_t moment, const Span& each) { return moment < each.from_ns; });
      return after == spans.begin() || time >= std::prev(after)->to_ns ? nullptr
                                                                       : &*std::prev(after);
    };
    std::size_t waits = 0;
    SliceId example = kNone<SliceId>;
    for (const HostWait& wait : graph_.waits) {
      if (edges_[wait.wait_edge].dropped || !span_of(trace_.start_ns(wait.call)) ||
          trace_.end_ns(wait.call) > span_of(trace_.start_ns(wait.call))->to_ns)
        continue;
      ++waits;
      example = wait.call;
    }
    if (waits > 0)
      return Error{Errc::kUnsupported,
                   fmt::format("'cuda-graph' expects steps in which the CPU does not wait for the "
                               "GPU between launches; found {} waits, such as {}. Add "
                               "--change remove-sync or --change pin, or capture parts of the step",
                               waits, trace_.name(example))};
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      Edge& edge = edges_[i];
      if (edge.kind == EdgeKind::kLaunch || edge.kind == EdgeKind::kStream ||
          edge.kind == EdgeKind::kStreamWait) {
        forget_slack(edge);
        continue;
      }
      if (!is_host(edge) && edge.kind != EdgeKind::kQueue) continue;
      const Span* span = span_of(graph_.time_ns[edge.from]);
      if (!span || edge.owner == span->first) continue;
      if (edge.kind == EdgeKind::kQueue)
        edge.dropped = true;
      else
        edge.weight_ns = 0;
    }
    applied_.notes.push_back(
        "the CPU's time between a step's first and last launch is gone, and the graph's launch "
        "costs as much as the first launch does now: shapes must not change, and code on the CPU "
        "in between does not run again");
    return std::nullopt;
  }

  // Bytes a second of pinned copies of at least 256 KB; 0: the trace has none.
  double pinned_rate(bool to_device) const {
    std::vector<std::int64_t> rates;
    for (const GpuWork& work : graph_.works) {
      const std::string_view name = trace_.name(work.slice);
      const auto bytes = trace_.slice_args(work.slice).integer(ArgKey::kBytes);
      if (name.find("Pinned") == std::string_view::npos || is_to_device(name) != to_device ||
          !bytes || *bytes < 256 * 1024 || trace_.dur_ns(work.slice) == 0)
        continue;
      rates.push_back(static_cast<std::int64_t>(static_cast<double>(*bytes) * 1e9 /
                                                static_cast<double>(trace_.dur_ns(work.slice))));
    }
    return static_cast<double>(analysis::lower_median(std::move(rates)));
  }

  void pin() {
    const double rates[] = {change_.number ? *change_.number * 1e9 : pinned_rate(false),
                            change_.number ? *change_.number * 1e9 : pinned_rate(true)};
    std::vector<std::int64_t> calls;
    std::unordered_set<std::uint32_t> input_calls;
    bool unknown = false;
    for (const GpuWork& work : graph_.works) {
      if (work.launch == kNone<SliceId>) continue;
      const std::string_view name = trace_.name(work.slice);
      if (name.find("Pageable") == std::string_view::npos) {
        calls.push_back(trace_.dur_ns(work.launch));
        continue;
      }
      ++applied_.count;
      const bool to_device = is_to_device(name);
      if (to_device) input_calls.insert(raw(work.launch));
      const auto bytes = trace_.slice_args(work.slice).integer(ArgKey::kBytes);
      const double rate = rates[to_device ? 1 : 0];
      if (rate <= 0 || !bytes)
        unknown = true;
      else if (work.work_edge != kNoIndex)
        edges_[work.work_edge].weight_ns =
            std::min(edges_[work.work_edge].weight_ns,
                     static_cast<std::int64_t>(static_cast<double>(*bytes) * 1e9 / rate));
    }
    for (const HostWait& wait : graph_.waits)
      if (input_calls.contains(raw(wait.call))) edges_[wait.wait_edge].dropped = true;
    const std::int64_t call_ns = calls.empty() ? 10'000 : analysis::lower_median(std::move(calls));
    for (Edge& edge : edges_)
      if (edge.kind == EdgeKind::kHost && edge.owner != kNone<SliceId> &&
          input_calls.contains(raw(edge.owner)))
        edge.weight_ns = std::min(edge.weight_ns, call_ns);
    if (applied_.count == 0) return;
    applied_.notes.push_back(
        "copies to the GPU no longer stop the CPU (non_blocking=True), copies to the CPU still do; "
        "the time to fill the pinned memory is not added");
    if (unknown)
      applied_.notes.push_back(
          "the trace holds no pinned copy of 256 KB or more in that direction, so copies keep "
          "their time; 'pin 50 GB/s' names a rate");
  }

  bool is_host_copy(std::uint32_t work) const {
    const std::string_view name = trace_.name(graph_.works[work].slice);
    return trace_.kind(graph_.works[work].slice) == CategoryKind::kGpuMemcpy &&
           (is_to_device(name) || name.find("DtoH") != std::string_view::npos ||
            name.find("DeviceToHost") != std::string_view::npos);
  }

  // After copies now comes what waits for the last copy to the GPU before those.
  void use_copy_before(const GpuWork& work, std::uint32_t before) {
    while (before != kNoIndex &&
           !(is_host_copy(before) && is_to_device(trace_.name(graph_.works[before].slice))))
      before = graph_.works[before].previous;
    if (before == kNoIndex || work.spare_edge == kNoIndex || graph_.works[before].end >= work.start)
      return;
    edges_[work.spare_edge].from = graph_.works[before].end;
    edges_[work.spare_edge].dropped = false;
  }

  // A work's stream edge comes from the last work of its stream that is no copy; copies of one
  // direction follow each other.
  void overlap_copies() {
    std::uint32_t last[2] = {kNoIndex, kNoIndex};
    for (std::uint32_t i = 0; i < graph_.works.size(); ++i) {
      const GpuWork& work = graph_.works[i];
      const bool copy = is_host_copy(i);
      std::uint32_t before = work.previous;
      if (copy) {
        std::uint32_t& same = last[is_to_device(trace_.name(work.slice)) ? 1 : 0];
        before = std::exchange(same, i);
        ++applied_.count;
      } else {
        while (before != kNoIndex && is_host_copy(before)) before = graph_.works[before].previous;
        if (before == work.previous) continue;
        use_copy_before(work, before);
      }
      if (work.stream_edge == kNoIndex) continue;
      Edge& edge = edges_[work.stream_edge];
      forget_slack(edge);
      if (before != kNoIndex && graph_.works[before].end < work.start)
        edge.from = graph_.works[before].end;
      else if (work.launch_edge != kNoIndex)
        edge.dropped = true;
    }
    if (applied_.count > 0)
      applied_.notes.push_back(
          "copies run on a stream of their own, and what ran after a copy uses the data of the "
          "copy "
          "before it, such as the one made during the last step. Calls that wait for a copy still "
          "wait");
  }

  const StepGraph& graph_;
  const Trace& trace_;
  const analysis::SliceNesting& nesting_;
  const Change& change_;
  std::vector<Edge>& edges_;
  Applied applied_;
};

}  // namespace

Result<Change> parse_change(std::string_view text) {
  text = trimmed(text);
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space), rest = trimmed(text.substr(space));
  Change change;
  change.text = text;
  if (word == "speed") {
    change.kind = ChangeKind::kSpeed;
    return parse_speed(std::move(change), rest);
  }
  if (word == "cpu") {
    const auto factor = factor_of(rest);
    if (!factor) return wrong(text, "'cpu 1.5x': how many times faster the CPU is");
    change.kind = ChangeKind::kCpu;
    change.factor = *factor;
    return change;
  }
  if (word == "remove" || word == "remove-sync") {
    change.kind = word == "remove" ? ChangeKind::kRemove : ChangeKind::kRemoveSync;
    change.name = rest;
    if (word == "remove" && rest.empty())
      return wrong(text, "'remove NAME': a kernel, an operator or a range");
    return change;
  }
  if (word == "no-profiler" || word == "pin") {
    const bool pin = word == "pin";
    change.kind = pin ? ChangeKind::kPin : ChangeKind::kNoProfiler;
    if (rest.empty()) return change;
    change.number = number_of(rest, pin ? "GB/s" : "us");
    if (!change.number || (pin && *change.number <= 0))
      return wrong(text, pin ? "'pin' or 'pin 50 GB/s'" : "'no-profiler' or 'no-profiler 0.8 us'");
    return change;
  }
  if ((word == "cuda-graph" || word == "overlap-copies") && rest.empty()) {
    change.kind = word == "cuda-graph" ? ChangeKind::kCudaGraph : ChangeKind::kOverlapCopies;
    return change;
  }
  return wrong(text, kKinds);
}

Result<Applied> apply_change(const StepGraph& graph, const analysis::SliceNesting& nesting,
                             const Change& change, std::vector<Edge>& edges) {
  return Changer(graph, nesting, change, edges).run();
}

}  // namespace lanescope::simulate
