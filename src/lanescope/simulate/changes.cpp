#include "lanescope/simulate/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_set>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/duration.h"
#include "lanescope/model/gpu_catalog.h"

namespace lanescope::simulate {
namespace {

// What recording costs a thread where an event begins or ends: so much at most, and at most that
// share of the time until the next event. Fitted to programs that were also timed without a
// profiler; docs/measurements/whatif.md has the fit and its error.
constexpr double kRecordingNs = 7'500;
constexpr double kRecordingShare = 0.5;

constexpr char kKinds[] =
    "'speed NAME 2x', 'cpu 1.5x', 'gpu 1.5x', 'gpu NAME', 'copies 2x', 'communication 2x', "
    "'loader 2x', 'workers N', 'batch 2x', 'remove NAME', 'fuse NAME', 'remove-sync [PATTERN]', "
    "'no-profiler [US]', 'cuda-graph', 'pin [GB/S]' or 'overlap-copies'";

// Work that is shorter does not grow with the batch, nor shrink on a faster GPU.
constexpr std::int64_t kFixedWorkNs = 5'000;

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

// A kind of time and how many times faster it is; for the GPU also the name of another one.
Result<Change> parse_scale(Change change, std::string_view word, std::string_view rest) {
  change.kind = word == "gpu"             ? ChangeKind::kGpu
                : word == "copies"        ? ChangeKind::kCopies
                : word == "communication" ? ChangeKind::kCommunication
                : word == "loader"        ? ChangeKind::kLoader
                                          : ChangeKind::kBatch;
  if (const auto factor = factor_of(rest)) {
    change.factor = *factor;
    return change;
  }
  if (word == "gpu" && !rest.empty()) {
    change.name = rest;
    return change;
  }
  return wrong(change.text, word == "gpu" ? "'gpu 1.5x' or 'gpu NAME'"
                            : word == "batch"
                                ? "'batch 2x': how many times larger"
                                : fmt::format("'{} 2x': how many times faster", word));
}

// "4", "8 from 2".
Result<Change> parse_workers(Change change, std::string_view rest) {
  change.kind = ChangeKind::kWorkers;
  change.number = take_decimal(&rest);
  rest = trimmed(rest);
  if (rest.starts_with("from ")) {
    rest = trimmed(rest.substr(5));
    change.from = take_decimal(&rest);
    if (!change.from || *change.from < 1) change.number.reset();
  }
  if (!change.number || *change.number < 1 || !trimmed(rest).empty())
    return wrong(change.text,
                 "'workers 4' or 'workers 8 from 2': how many, and how many there are now");
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
      case ChangeKind::kFuse:
        fuse();
        break;
      case ChangeKind::kGpu:
        if (auto refused = gpu()) return *std::move(refused);
        break;
      case ChangeKind::kCopies:
        scale_work(analysis::WorkClass::kCopy, 1 / change_.factor, 0);
        break;
      case ChangeKind::kCommunication:
        scale_work(analysis::WorkClass::kCommunication, 1 / change_.factor, 0);
        break;
      case ChangeKind::kLoader:
        scale_loader(1 / change_.factor);
        break;
      case ChangeKind::kWorkers:
        if (auto refused = workers()) return *std::move(refused);
        break;
      case ChangeKind::kBatch:
        batch();
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
      case ChangeKind::kFuse:
        expected = "an operator, range or kernel of that name that runs several kernels in a row";
        break;
      case ChangeKind::kCopies:
        expected = "copies";
        break;
      case ChangeKind::kCommunication:
        expected = "collectives on the GPU";
        break;
      case ChangeKind::kLoader:
      case ChangeKind::kWorkers:
        expected = "time in the DataLoader";
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
    return (edge.kind == EdgeKind::kHost && !edge.in_loader) || edge.kind == EdgeKind::kHandOver;
  }
  static bool is_loader(const Edge& edge) { return edge.kind == EdgeKind::kData || edge.in_loader; }
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

  bool waits_for_input(const HostWait& wait) const {
    return trace_.api_call(wait.call).does(api_effect::kCopies) &&
           is_copy_to_device(trace_.name(graph_.works[wait.work].slice));
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
    if (!change_.number) {
      take_out_recording(edges_);
      applied_.count = edges_.size();
      applied_.notes.push_back(
          "what recording cost is estimated from the number of events; of the programs that were "
          "also timed without a profiler, half came within 15 % and four of five within 35 % "
          "(docs/measurements/whatif.md)");
      return;
    }
    const auto half_ns = static_cast<std::int64_t>(*change_.number * 500);
    for (Edge& edge : edges_) {
      if (!is_host(edge)) continue;
      edge.weight_ns = std::max<std::int64_t>(edge.weight_ns - half_ns, 0);
      ++applied_.count;
    }
    applied_.notes.push_back(
        fmt::format("each recorded event is taken to cost the program {:.1f} us", *change_.number));
  }

  void scale_work(std::optional<analysis::WorkClass> work_class, double by, std::int64_t least_ns) {
    for (const GpuWork& work : graph_.works) {
      if (work.work_edge == kNoIndex || (work_class && work.work != *work_class) ||
          edges_[work.work_edge].weight_ns < least_ns)
        continue;
      Edge& edge = edges_[work.work_edge];
      scale(edge, by);
      edge.weight_ns = std::max(edge.weight_ns, least_ns);
      ++applied_.count;
    }
  }

  void scale_loader(double by) {
    for (Edge& edge : edges_) {
      if (!is_loader(edge)) continue;
      scale(edge, by);
      ++applied_.count;
    }
  }

  // Time in the loader of each steady step. Workers make batches while the step runs, so a step
  // waits for what they do not make in time.
  std::optional<Error> workers() {
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // from, to
    for (const StepBoundaries& step : graph_.steps)
      steps.emplace_back(boundary_ns(step.begin), boundary_ns(step.end));
    std::sort(steps.begin(), steps.end());
    std::vector<std::int64_t> loader_ns(steps.size(), 0);
    bool is_single = false, any = false;
    for (const Edge& edge : edges_) {
      if (!is_loader(edge) || edge.owner == kNone<SliceId> || edge.weight_ns == 0) continue;
      any = true;
      is_single |= trace_.name(edge.owner).find("SingleProcess") != std::string_view::npos;
      if (const auto step = step_around(steps, edge)) loader_ns[*step] += edge.weight_ns;
    }
    if (!any) return std::nullopt;  // nothing fits
    if (!is_single && !change_.from)
      return Error{Errc::kInvalidArgument,
                   "'workers N' expects to know how many workers there are now, which the trace "
                   "does not say; found only N. Use 'workers 8 from 2'"};
    for (Edge& edge : edges_) {
      const auto step = is_loader(edge) ? step_around(steps, edge) : std::nullopt;
      if (!step || loader_ns[*step] == 0) continue;
      // The loader decides the step's pace, so as many workers as there are now make one batch a
      // step.
      const std::int64_t step_ns = steps[*step].second - steps[*step].first;
      const auto now_ns = static_cast<double>(loader_ns[*step]);
      const double batch_ns =
          is_single ? now_ns : static_cast<double>(step_ns) * change_.from.value_or(0);
      const double wait_ns =
          std::max(0.0, batch_ns / *change_.number - (static_cast<double>(step_ns) - now_ns));
      scale(edge, std::min(1.0, wait_ns / now_ns));
      ++applied_.count;
    }
    applied_.notes.push_back(
        "workers are taken to make batches at the same rate each, with a free core for each: "
        "storage and memory bandwidth may limit them earlier");
    return std::nullopt;
  }

  // The step that holds the edge's begin.
  std::optional<std::size_t> step_around(
      const std::vector<std::pair<std::int64_t, std::int64_t>>& steps, const Edge& edge) const {
    const std::int64_t time_ns = graph_.time_ns[edge.from];
    auto after =
        std::upper_bound(steps.begin(), steps.end(), time_ns,
                         [](std::int64_t time, const auto& each) { return time < each.first; });
    if (after == steps.begin() || (--after)->second <= time_ns) return std::nullopt;
    return static_cast<std::size_t>(after - steps.begin());
  }
  std::int64_t boundary_ns(const Boundary& boundary) const {
    return boundary.cpu_point == kNoIndex ? graph_.time_ns.back()
                                          : graph_.time_ns[boundary.cpu_point] + boundary.after_ns;
  }

  void batch() {
    scale_work(std::nullopt, change_.factor, kFixedWorkNs);
    scale_loader(change_.factor);
    applied_.notes.push_back(fmt::format(
        "rough: a step now does {}x the work. GPU work of {} or more and the loader take that much "
        "longer, shorter work and the CPU take as long as before, and memory must suffice",
        change_.factor, format_ns(kFixedWorkNs)));
  }
  static std::string format_ns(std::int64_t ns) { return fmt::format("{} us", ns / 1000); }

  // Rough: by the memory bandwidth of the two GPUs, or a factor.
  std::optional<Error> gpu() {
    double factor = change_.factor;
    if (!change_.name.empty()) {
      const GpuSpec* to = named_gpu(change_.name);
      const auto devices =
          parse_gpu_devices(trace_.metadata_json("deviceProperties").value_or("[]"));
      const GpuSpec* from = devices.empty() ? nullptr : find_gpu_spec(devices.front());
      if (!to)
        return Error{Errc::kInvalidArgument,
                     fmt::format("'gpu NAME' expects a GPU that lanescope knows or a factor, such "
                                 "as 'gpu H200' or 'gpu 1.5x'; found '{}'",
                                 change_.name)};
      if (!from)
        return Error{Errc::kUnsupported,
                     "'gpu NAME' expects a recording of a GPU that lanescope knows; this trace "
                     "names none. Use a factor: 'gpu 1.5x'"};
      factor = to->memory_bandwidth_bytes_per_s / from->memory_bandwidth_bytes_per_s;
      applied_.notes.push_back(fmt::format(
          "rough: from {} to {}, all kernels change with the memory bandwidth, {:.2f}x. Kernels "
          "that compute more than they move change differently",
          from->name, to->name, factor));
    } else {
      applied_.notes.push_back("rough: all kernels change by the same factor");
    }
    scale_work(analysis::WorkClass::kCompute, 1 / factor, change_.name.empty() ? 0 : kFixedWorkNs);
    return std::nullopt;
  }

  static const GpuSpec* named_gpu(std::string_view name) {
    const GpuSpec* best = nullptr;
    for (const GpuSpec& spec : gpu_specs())
      if (contains(spec.name, name) && (!best || spec.name.size() < best->name.size()))
        best = &spec;
    return best;
  }

  // Kernels in a row on a stream, launched inside the same occurrence of the name, become one that
  // takes as long as the longest: it reads and writes its data once.
  void fuse() {
    const NamePattern pattern(trace_, change_.name);
    const std::vector<bool> fits = inside(pattern);
    std::unordered_set<std::uint32_t> gone_launches;
    std::uint32_t first = kNoIndex, longest = kNoIndex;
    const auto is_fused = [&](const GpuWork& work) {
      return work.work == analysis::WorkClass::kCompute && work.work_edge != kNoIndex &&
             work_fits(work, fits);
    };
    for (std::uint32_t i = 0; i < graph_.works.size(); ++i) {
      const GpuWork& work = graph_.works[i];
      if (!is_fused(work)) continue;
      const bool follows =
          first != kNoIndex && work.previous != kNoIndex && is_fused(graph_.works[work.previous]) &&
          outermost(pattern, graph_.works[work.previous]) == outermost(pattern, work) &&
          outermost(pattern, work) != kNone<SliceId>;
      if (!follows) {
        first = longest = i;
        continue;
      }
      Edge& kept = edges_[graph_.works[first].work_edge];
      kept.weight_ns = std::max(kept.weight_ns, edges_[work.work_edge].weight_ns);
      edges_[work.work_edge].weight_ns = 0;
      if (work.stream_edge != kNoIndex) {
        edges_[work.stream_edge].weight_ns = edges_[work.stream_edge].unexplained_ns = 0;
        if (work.launch_edge != kNoIndex) edges_[work.launch_edge].dropped = true;
      }
      if (work.launch != kNone<SliceId>) gone_launches.insert(raw(work.launch));
      ++applied_.count;
    }
    for (Edge& edge : edges_)
      if (edge.kind == EdgeKind::kHost && edge.owner != kNone<SliceId> &&
          gone_launches.contains(raw(edge.owner)))
        edge.weight_ns = 0;
    if (applied_.count > 0)
      applied_.notes.push_back(
          "kernels in a row of one occurrence become one that takes as long as the longest of "
          "them; operators around the launches keep their own CPU time");
  }

  // The outermost event of the pattern around the work's launch; kNone: none.
  SliceId outermost(const NamePattern& pattern, const GpuWork& work) const {
    SliceId found = kNone<SliceId>;
    SliceId slice =
        work.launch != kNone<SliceId> ? work.launch : graph_.links->op_of[raw(work.slice)];
    for (int depth = 0; slice != kNone<SliceId> && depth < 1000; ++depth) {
      if (pattern.fits(trace_, slice)) found = slice;
      slice = nesting_.parent[raw(slice)];
    }
    if (found == kNone<SliceId> && work.launch != kNone<SliceId>) {
      slice = graph_.links->op_of[raw(work.launch)];
      for (int depth = 0; slice != kNone<SliceId> && depth < 1000; ++depth) {
        if (pattern.fits(trace_, slice)) found = slice;
        slice = nesting_.parent[raw(slice)];
      }
    }
    return found;
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
      if (name.find("Pinned") == std::string_view::npos || is_copy_to_device(name) != to_device ||
          !bytes || *bytes < kLeastRatedCopyBytes || trace_.dur_ns(work.slice) == 0)
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
      const bool to_device = is_copy_to_device(name);
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
           (is_copy_to_device(name) || name.find("DtoH") != std::string_view::npos ||
            name.find("DeviceToHost") != std::string_view::npos);
  }

  // After copies now comes what waits for the last copy to the GPU before those.
  void use_copy_before(const GpuWork& work, std::uint32_t before) {
    while (before != kNoIndex &&
           !(is_host_copy(before) && is_copy_to_device(trace_.name(graph_.works[before].slice))))
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
        std::uint32_t& same = last[is_copy_to_device(trace_.name(work.slice)) ? 1 : 0];
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
  if (word == "remove" || word == "fuse" || word == "remove-sync") {
    change.kind = word == "remove" ? ChangeKind::kRemove
                  : word == "fuse" ? ChangeKind::kFuse
                                   : ChangeKind::kRemoveSync;
    change.name = rest;
    if (word != "remove-sync" && rest.empty())
      return wrong(text, fmt::format("'{} NAME': a kernel, an operator or a range", word));
    return change;
  }
  if (word == "gpu" || word == "copies" || word == "communication" || word == "loader" ||
      word == "batch")
    return parse_scale(std::move(change), word, rest);
  if (word == "workers") return parse_workers(std::move(change), rest);
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

bool is_copy_to_device(std::string_view name) {
  return name.find("HtoD") != std::string_view::npos ||
         name.find("HostToDevice") != std::string_view::npos;
}

void take_out_recording(std::span<Edge> edges, double share) {
  for (Edge& edge : edges) {
    if (edge.kind != EdgeKind::kHost && edge.kind != EdgeKind::kHandOver) continue;
    const double cost =
        std::min(kRecordingNs, static_cast<double>(edge.weight_ns) * kRecordingShare) * share;
    edge.weight_ns -= std::min(edge.weight_ns, static_cast<std::int64_t>(cost));
    edge.unexplained_ns = std::min(edge.unexplained_ns, edge.weight_ns);
  }
}

Result<Applied> apply_change(const StepGraph& graph, const analysis::SliceNesting& nesting,
                             const Change& change, std::vector<Edge>& edges) {
  return Changer(graph, nesting, change, edges).run();
}

}  // namespace lanescope::simulate
