// Elementwise kernels of one size, one after the other: each writes a tensor that the next reads
// back, where one generated kernel would keep it in registers.
//
// Problem: how much could fusing give at most? Idea: one kernel instead of n must still read and
// write at least what the cheapest of the n does, so no more than the sum minus the shortest can go
// away. Where the shapes, the types and the GPU's data sheet are known, it must also read the
// chain's first input and write its last output from memory, which takes bytes / bandwidth.
// Example: 30, 30 and 20 us on tensors whose two outer ones take 16 us at full bandwidth: at most
// 80 - max(20, 16) = 60 us.
//
// Without recorded shapes, kernels with equally many threads count as of one size, and only where the GPU computes most of the
// time.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>

#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/elementwise_chains.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/left_out_of_compiling.h"
#include "lanescope/explain/rules/parsed_kernel_names.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/user_code.h"
#include "lanescope/model/gpu_catalog.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Phase;

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 46;  // elements; larger is damage

std::int64_t product(const JsonValue& shape) {
  std::int64_t result = 1;
  for (const JsonValue& size : shape.items) {
    if (!size.integer || *size.integer < 0 || *size.integer > kLargest) return 0;
    result *= *size.integer;
    if (result > kLargest) return 0;
  }
  return shape.items.empty() ? 0 : result;
}

std::int64_t element_bytes(std::string_view type) {
  if (type == "float" || type == "int" || type == "f32") return 4;
  if (type == "double" || type == "long int" || type == "long") return 8;
  if (type == "c10::BFloat16" || type == "c10::Half" || type == "bf16" || type == "f16") return 2;
  return 1;  // bool, 8-bit types, and at least that of whatever else
}

// The elements of an operator's result, to which its inputs broadcast, and the bytes of its largest input; 0 when the shapes
// were not recorded. Inputs that do not fit each other: elements of the largest.
// Without shapes, `elements` are the kernel's threads, and `by_grid` the most elements that it works on.
struct Size {
  std::int64_t elements = 0, bytes = 0, by_grid = 0;
  bool is_any = false;  // a norm's kernel, which says nothing of its size: that of its neighbour
};

class ChainSizes {
 public:
  explicit ChainSizes(const Trace& trace) : trace_(trace) {}

  Size of(SliceId op) {
    if (op == kNone<SliceId>) return {};
    const auto dims = trace_.slice_args(op).text(ArgKey::kInputDims);
    if (!dims) return {};
    const auto types = trace_.slice_args(op).text(ArgKey::kInputType);
    const std::uint64_t key =
        (std::uint64_t{raw(*dims)} << 32) | raw(types.value_or(kNone<StringId>));
    const auto [entry, is_new] = known_.try_emplace(key);
    if (is_new) entry->second = parse(trace_.text(*dims), types ? trace_.text(*types) : "");
    return entry->second;
  }

 private:
  static Size parse(std::string_view dims, std::string_view types) {
    const JsonValue shapes = parse_json(dims).value_or(JsonValue{});
    const JsonValue names = parse_json(types).value_or(JsonValue{});
    Size largest;
    std::optional<analysis::Sizes> result;
    bool fit = true;
    for (std::size_t i = 0; i < shapes.items.size(); ++i) {
      if (const auto sizes = analysis::sizes_of(shapes.items[i]); sizes && !sizes->empty()) {
        result = !result ? sizes : fit ? analysis::broadcast(*result, *sizes) : result;
        fit = fit && result.has_value();
      }
      const std::int64_t elements = product(shapes.items[i]);
      if (elements <= largest.elements) continue;
      largest.elements = elements;
      largest.bytes = elements * (i < names.items.size() ? element_bytes(names.items[i].text) : 1);
    }
    if (fit && result && analysis::element_count(*result) <= static_cast<double>(kLargest))
      largest.elements =
          std::max(largest.elements, static_cast<std::int64_t>(analysis::element_count(*result)));
    return largest;
  }
  const Trace& trace_;
  std::unordered_map<std::uint64_t, Size> known_;
};

struct Link {
  const DeviceWork* work = nullptr;
  SliceId op = kNone<SliceId>;
  Size size;
  std::size_t step = 0;  // that launched it
  std::int64_t duration() const { return work->end_ns - work->start_ns; }
};

struct ChainGroup {
  std::uint64_t chains = 0;
  std::int64_t gpu_ns = 0, saved_ns = 0, waits_ns = 0;
  std::size_t length = 0;
  std::int64_t elements = 0;
  SliceId longest = kNone<SliceId>, op = kNone<SliceId>, last_op = kNone<SliceId>;
  std::int64_t longest_ns = 0;
  std::vector<std::vector<SliceId>> kernels = {};  // of each chain
};

// The most bytes that main memory moves in a nanosecond, and how many bytes can stay in the cache.
struct Memory {
  double bandwidth = 0;
  std::int64_t cache_bytes = 0;
};
Memory memory_of(const Facts& facts) {
  Memory memory;
  const auto json = facts.trace->metadata_json("deviceProperties");
  if (!json) return memory;
  for (const GpuDevice& gpu : parse_gpu_devices(*json)) {
    if (gpu.id && *gpu.id != facts.device().timeline.device) continue;
    const GpuSpec* spec = find_gpu_spec(gpu);
    if (!spec) continue;
    constexpr std::int64_t kLargestCache = std::int64_t{128} << 20;  // where it is not known
    memory = {spec->memory_bandwidth_bytes_per_s / 1e9,
              gpu.l2_bytes.value_or(spec->l2_bytes.value_or(kLargestCache))};
    break;
  }
  return memory;
}

class Chains {
 public:
  Chains(const Facts& facts, const Memory& memory, bool knows_sizes)
      : facts_(facts), memory_(memory), knows_sizes_(knows_sizes) {}

  void add(const Link& link) {
    if (!chain_.empty() && !continues(link)) {
      if (is_aside(link)) {
        aside_.push_back(link);
        return;
      }
      close_chain();
      add_those_aside();
      if (!chain_.empty()) return add(link);
    }
    if (chain_.empty() || !link.size.is_any) size_ = link.size;
    chain_.push_back(link);
  }

  void close() {
    do {
      close_chain();
      add_those_aside();
    } while (!chain_.empty());
  }

  const std::map<std::string, ChainGroup>& groups() const { return groups_; }
  const std::vector<const DeviceWork*>& works() const { return works_; }

 private:
  // One operator over and over is a loop over tensors, not a chain. Several operators that repeat
  // (mul, add, mul, add) are a loop over tensors with one chain for each.
  void close_chain() {
    std::vector<Link> chain;
    chain.swap(chain_);
    if (chain.size() < 2) return;
    const std::size_t period = period_of(chain);
    if (period < 2) return;
    for (std::size_t at = 0; at + 1 < chain.size(); at += period)
      take(std::span(chain).subspan(at, std::min(period, chain.size() - at)));
  }

  // They may be a chain of their own.
  void add_those_aside() {
    std::vector<Link> aside;
    aside.swap(aside_);
    for (const Link& link : aside) add(link);
  }

  // A few kernels on a much smaller tensor, such as the cast of a scale that the next kernel multiplies by, do not end the chain:
  // a compiler moves them before it.
  bool is_aside(const Link& next) const {
    constexpr std::size_t kMostAside = 4;
    constexpr std::int64_t kMuchSmaller = 8;
    const bool is_much_smaller =
        knows_sizes_ ? next.size.elements * kMuchSmaller <= size_.elements
                     : !next.size.is_any && next.size.by_grid * kMuchSmaller <= size_.by_grid;
    return is_much_smaller && aside_.size() < kMostAside && follows(next, latest());
  }
  // The chain's last kernel or the last one aside, whichever ends later.
  const Link& latest() const {
    return aside_.empty() || chain_.back().work->end_ns > aside_.back().work->end_ns
               ? chain_.back()
               : aside_.back();
  }

  // The smallest p up to half of the length with op[i] == op[i - p] for all i, else the length. By
  // the table of the longest prefix that is also a suffix (Knuth, Morris, Pratt): O(n).
  std::size_t period_of(const std::vector<Link>& chain) const {
    const auto op = [&](std::size_t i) { return facts_.trace->slices().name[raw(chain[i].op)]; };
    std::vector<std::size_t> border(chain.size(), 0);
    for (std::size_t i = 1, k = 0; i < chain.size(); ++i) {
      while (k > 0 && op(i) != op(k)) k = border[k - 1];
      if (op(i) == op(k)) ++k;
      border[i] = k;
    }
    const std::size_t period = chain.size() - border.back();
    return period * 2 <= chain.size() ? period : chain.size();
  }

  void take(std::span<const Link> chain) {
    const Trace& trace = *facts_.trace;
    if (chain.size() < 2) return;
    std::string label;
    std::int64_t sum = 0, shortest = chain[0].duration();
    for (std::size_t i = 0; i < chain.size(); ++i) {
      std::string_view op = trace.name(chain[i].op);
      if (op.starts_with("aten::")) op.remove_prefix(6);
      if (i < 8) label += (i ? ", " : "") + std::string(op.substr(0, 40));
      if (i == 8) label += ", ...";
      sum += chain[i].duration();
      shortest = std::min(shortest, chain[i].duration());
    }
    std::int64_t least = shortest;
    const std::int64_t bytes = chain.front().size.bytes + chain.back().size.elements;
    if (memory_.bandwidth > 0 && bytes > 2 * memory_.cache_bytes)
      least = std::max(least,
                       static_cast<std::int64_t>(static_cast<double>(bytes) / memory_.bandwidth));
    const std::int64_t waits =
        launch_waits_within(facts_, chain.front().work->start_ns, chain.back().work->end_ns);
    const std::int64_t saved = std::max<std::int64_t>(0, sum - least) + waits;
    ChainGroup& group = groups_[label];
    std::vector<SliceId>& kernels = group.kernels.emplace_back();
    for (const Link& link : chain) {
      works_.push_back(link.work);
      kernels.push_back(link.work->slice);
    }
    ++group.chains;
    group.gpu_ns += sum;
    group.saved_ns += saved;
    group.waits_ns += waits;
    group.length = chain.size();
    group.elements = chain[chain[0].size.is_any ? 1 : 0].size.elements;
    if (sum > group.longest_ns) {
      group.longest_ns = sum;
      group.longest = chain[0].work->slice;
      group.op = chain[0].op;
      group.last_op = chain.back().op;
    }
  }

  bool continues(const Link& next) const {
    return is_same_size(next.size, size_) && follows(next, latest());
  }

  // A grid has a whole number of blocks, of up to 8 elements for each of 512 threads.
  bool is_same_size(const Size& a, const Size& b) const {
    constexpr std::int64_t kLargestRest = 4096, kFewest = 65'536;
    // A norm of large tensors is none of the numbers of its channels, which are made just before it.
    if (a.is_any || b.is_any)
      return (a.is_any || a.by_grid >= kFewest) && (b.is_any || b.by_grid >= kFewest);
    if (a.elements == b.elements) return true;
    if (knows_sizes_) return false;
    const auto [less, more] = std::minmax(a.by_grid, b.by_grid);
    return less >= kFewest && more - less <= kLargestRest;
  }

  bool follows(const Link& next, const Link& last) const {
    const auto& tracks = facts_.trace->slices().track;
    return next.step == last.step && tracks[raw(next.op)] == tracks[raw(last.op)] &&
           next.work->start_ns - last.work->end_ns < analysis::kLongestLaunchLatencyNs * 5;
  }
  const Facts& facts_;
  Memory memory_;
  bool knows_sizes_ = false;  // by shapes, not by grids
  std::vector<Link> chain_;
  Size size_;                // of the chain's last kernel that has one
  std::vector<Link> aside_;  // between the last kernel of the chain and the next one
  std::map<std::string, ChainGroup> groups_;
  std::vector<const DeviceWork*> works_;  // of all chains
};

// The kernels of all chains, in order of time.
std::vector<SliceId> kernels_of_all(const std::map<std::uint32_t, Chains>& streams) {
  std::vector<const DeviceWork*> works;
  for (const auto& [track, chains] : streams)
    works.insert(works.end(), chains.works().begin(), chains.works().end());
  sort_rows(works.begin(), works.end(),
            [](const DeviceWork* a, const DeviceWork* b) { return a->start_ns < b->start_ns; });
  std::vector<SliceId> kernels;
  for (const DeviceWork* work : works) kernels.push_back(work->slice);
  return kernels;
}

// The groups of all streams together.
std::map<std::string, ChainGroup> groups_of_all(std::map<std::uint32_t, Chains>& streams) {
  std::map<std::string, ChainGroup> groups;
  for (auto& [track, chains] : streams) {
    chains.close();
    for (const auto& [label, group] : chains.groups()) {
      ChainGroup& all = groups[label];
      const bool longer = group.longest_ns > all.longest_ns;
      std::vector<std::vector<SliceId>> kernels = std::move(all.kernels);
      kernels.insert(kernels.end(), group.kernels.begin(), group.kernels.end());
      ChainGroup sum{all.chains + group.chains,
                     all.gpu_ns + group.gpu_ns,
                     all.saved_ns + group.saved_ns,
                     all.waits_ns + group.waits_ns,
                     group.length,
                     group.elements,
                     longer ? group.longest : all.longest,
                     longer ? group.op : all.op,
                     longer ? group.last_op : all.last_op,
                     std::max(group.longest_ns, all.longest_ns),
                     std::move(kernels)};
      all = std::move(sum);
    }
  }
  return groups;
}

struct UnfusedChains {
  bool by_threads = false;  // shapes were not recorded
  std::map<std::string, ChainGroup> groups;
  std::uint64_t chains = 0;
  std::int64_t gpu_ns = 0;
  std::int64_t saved_ns = 0;
  std::int64_t waits_ns = 0;
  bool bandwidth_is_known = false;
  std::vector<SliceId> kernels;  // of all chains
};

// Gradients that are added up, or, by a hook of DistributedDataParallel, scaled and copied into buckets.
bool is_accumulating(const Facts& facts, SliceId op) {
  return ancestor_where(facts, op, is_accumulating_node) != kNone<SliceId>;
}

// The threads of kernels' grids. Parses each different text once.
class GridThreads {
 public:
  explicit GridThreads(const Trace& trace) : trace_(trace) {}
  // 0: not recorded.
  std::int64_t of(SliceId kernel) {
    std::int64_t threads = 1;
    for (const ArgKey key : {ArgKey::kGrid, ArgKey::kBlock}) {
      const auto text = trace_.slice_args(kernel).text(key);
      if (!text) return 0;
      threads *= product_of(*text);
      if (threads <= 0 || threads > kLargest) return 0;
    }
    return threads;
  }

 private:
  std::int64_t product_of(StringId text) {
    const auto [known, is_new] = products_.try_emplace(raw(text));
    if (is_new) known->second = product(parse_json(trace_.text(text)).value_or(JsonValue{}));
    return known->second;
  }

  const Trace& trace_;
  std::unordered_map<std::uint32_t, std::int64_t> products_;
};

// The most elements that a kernel of these threads works on, by torch's loops: elementwise_kernel<128, 2, ...> and vectorized loops
// say how many a thread takes, others take four.
std::int64_t elements_of_threads(std::string_view kernel, const names::KernelName& parsed,
                                 std::int64_t threads) {
  std::int64_t each = std::max<std::int64_t>(4, parsed.vector_width.value_or(4));
  constexpr std::string_view kLoop = "::elementwise_kernel<";
  if (const std::size_t loop = kernel.find(kLoop); loop != kernel.npos && !parsed.vector_width) {
    const std::size_t comma = kernel.find(", ", loop);
    if (comma != kernel.npos && comma + 2 < kernel.size() && kernel[comma + 2] >= '1' &&
        kernel[comma + 2] <= '9')
      each = kernel[comma + 2] - '0';
  }
  return threads > kLargest / each ? 0 : threads * each;
}

// Scales and shifts each element by numbers of its channel. If these are of the batch, a kernel before it reads the same tensor, and
// ends the chain there.
bool applies_norm(const names::KernelName& kernel) {
  return kernel.library == "ATen" && kernel.operation == "batch norm, apply";
}

// Without recorded types the kernel's name tells.
bool is_complex_kernel(const names::KernelName& kernel) {
  return kernel.input_type.starts_with('c') || kernel.output_type.starts_with('c') ||
         kernel.text.find(", c") != std::string::npos;
}

// Inductor leaves operators on complex numbers to eager code.
bool takes_complex(const Trace& trace, SliceId op) {
  const auto types = trace.slice_args(op).text(ArgKey::kInputType);
  return types && trace.text(*types).find("c10::complex") != std::string_view::npos;
}

// However little they would save.
Measurement<UnfusedChains> measure_chains(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& phases = training_phases(facts);
  const KernelNames names(facts);
  GridThreads threads_in_grid(trace);
  ChainSizes sizes(trace);
  const Memory memory = memory_of(facts);
  const auto& steps = facts.steps.steps;
  const auto step_of = [&](SliceId op) {
    return static_cast<std::size_t>(
        std::upper_bound(steps.begin(), steps.end(), trace.start_ns(op),
                         [](std::int64_t time, const analysis::StepRange& step) {
                           return time < step.cpu_start_ns;
                         }) -
        steps.begin());
  };
  std::vector<Link> links;  // without an operator: what ends a chain
  std::uint64_t elementwise = 0, with_shapes = 0, with_threads = 0;
  for (const DeviceWork* work : steady_work(facts)) {
    const SliceId op = facts.links.op_of[raw(work->slice)];
    const bool is_norm = op != kNone<SliceId> && applies_norm(names.of(work->slice));
    // What a norm computes for each channel before it applies that.
    if (!is_norm && op != kNone<SliceId> && trace.name(op) == "aten::native_batch_norm" &&
        names.of(work->slice).variant == "elementwise")
      continue;
    const bool is_link = trace.kind(work->slice) == CategoryKind::kKernel && op != kNone<SliceId> &&
                         names.of(work->slice).library == "ATen" &&
                         (is_norm || names.of(work->slice).variant == "elementwise") &&
                         (phases[raw(work->slice)] == Phase::kOther ||
                          phases[raw(work->slice)] == Phase::kBackward) &&
                         !is_accumulating(facts, op) && !is_in_sparse(facts, op) &&
                         !takes_complex(trace, op) && !is_complex_kernel(names.of(work->slice));
    if (!is_link) {
      links.push_back({work, kNone<SliceId>, {}, 0});
      continue;
    }
    ++elementwise;
    // Operators on lists of tensors (cat, _foreach_*) have shapes, but no one size.
    if (trace.slice_args(op).has(ArgKey::kInputDims)) ++with_shapes;
    if (threads_in_grid.of(work->slice) > 0) ++with_threads;
    links.push_back({work, op, sizes.of(op), step_of(op)});
  }
  const bool by_threads = elementwise >= 3 && with_shapes * 2 < elementwise;
  if (by_threads && with_threads * 2 < elementwise)
    return NotChecked{"the operators' shapes (record_shapes=True)"};
  if (by_threads && facts.wall.partition.compute_ns * 2 < facts.wall.partition.wall_ns)
    return Quiet{};
  std::map<std::uint32_t, Chains> streams;
  for (Link& link : links) {
    if (by_threads && link.op != kNone<SliceId>) {
      const SliceId kernel = link.work->slice;
      const std::int64_t threads = threads_in_grid.of(kernel);
      link.size = {threads, 0, elements_of_threads(trace.name(kernel), names.of(kernel), threads),
                   applies_norm(names.of(kernel))};
    }
    Chains& stream = streams
                         .try_emplace(raw(trace.slices().track[raw(link.work->slice)]), facts,
                                      memory, !by_threads)
                         .first->second;
    if (link.op == kNone<SliceId> || link.size.elements == 0)
      stream.close();
    else
      stream.add(link);
  }
  std::map<std::string, ChainGroup> groups = groups_of_all(streams);
  std::int64_t gpu_ns = 0, saved_ns = 0, waits_ns = 0;
  std::uint64_t chains = 0;
  for (const auto& [label, group] : groups) {
    gpu_ns += group.gpu_ns;
    saved_ns += group.saved_ns;
    waits_ns += group.waits_ns;
    chains += group.chains;
  }
  if (is_thin(facts)) return Quiet{};
  return UnfusedChains{
      by_threads,           std::move(groups),      chains, gpu_ns, saved_ns, waits_ns,
      memory.bandwidth > 0, kernels_of_all(streams)};
}

Measurement<UnfusedChains> measure_unfused_chain(const Facts& facts) {
  Measurement<UnfusedChains> measured = measure_chains(facts);
  if (const auto* chains = std::get_if<UnfusedChains>(&measured);
      chains && wall_share(facts, chains->saved_ns) < (chains->by_threads ? 0.05 : 0.03))
    return Quiet{};
  return measured;
}

// Most to save first.
std::vector<std::pair<std::string, ChainGroup>> ranked_chains(
    const std::map<std::string, ChainGroup>& groups) {
  std::vector<std::pair<std::string, ChainGroup>> ranked(groups.begin(), groups.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.saved_ns > b.second.saved_ns; });
  return ranked;
}

// The three with most to save, as evidence.
void add_chains(const Facts& facts, const std::map<std::string, ChainGroup>& groups,
                bool by_threads, Finding& finding) {
  const auto ranked = ranked_chains(groups);
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    const ChainGroup& group = ranked[i].second;
    Sentence line =
        say(facts,
            by_threads ? "{} x{}, {} [thread|threads]: {} [per step]"
                       : "{} x{}, {} [element|elements]: {} [per step]",
            {name(ranked[i].first), count(group.chains),
             count(static_cast<std::uint64_t>(group.elements)), ns(facts.per_step(group.gpu_ns))});
    if (facts.per_step(group.waits_ns) > 0) {
      line.pattern += " and {} between them";
      line.values.push_back(ns(facts.per_step(group.waits_ns)));
    }
    line.pattern += ", at most {} less";
    line.values.push_back(ns(facts.per_step(group.saved_ns)));
    add_line(facts, group.op, line);
    finding.evidence.push_back({group.longest, std::move(line)});
  }
}

// The function of a place, whatever its line: "model.py:62 forward" and "model.py:63 forward" are one.
std::string function_of_place(const Sentence& place) {
  std::string function;
  for (const Value& value : place.values) {
    const std::size_t colon = value.text.find(".py:");
    const std::size_t end = colon == std::string::npos ? colon : value.text.find(' ', colon);
    function += end == std::string::npos ? value.text
                                         : value.text.substr(0, colon) + value.text.substr(end);
    function += '\n';
  }
  return function;
}

// Where the last kernel of the chain comes from another function than the first one, both are named.
Sentence compile_action(const Facts& facts, const ChainGroup& group) {
  const Sentence first = user_code(facts, group.op), last = user_code(facts, group.last_op);
  if (first.pattern.empty() || last.pattern.empty() ||
      function_of_place(first) == function_of_place(last))
    return say("torch.compile the function that holds them");
  // One line calls several modules.
  if (!first.values.empty() && !last.values.empty() &&
      first.values.front().text == last.values.front().text)
    return say("torch.compile the function that calls these modules: the chain goes beyond one");
  // The backward pass goes through the program's code in the other direction.
  constexpr std::string_view kBackward = "in the backward pass of ";
  const auto forward_name = [&](Sentence place) {
    place.pattern.erase(0, kBackward.size());
    return place;
  };
  const bool is_backward =
      first.pattern.starts_with(kBackward) && last.pattern.starts_with(kBackward);
  Sentence action = say(is_backward ? "torch.compile one forward function around all of it, from "
                                    : "torch.compile one function around the whole chain, from ");
  append(action, is_backward ? forward_name(last) : without_preposition(first));
  append(action, say(" to "));
  append(action, is_backward ? forward_name(first) : without_preposition(last));
  return action;
}

// What to do about the chain with most to save.
void advise_on_chains(const Facts& facts, const std::map<std::string, ChainGroup>& groups,
                      Finding& finding) {
  finding.action = say("torch.compile the function that holds them");
  finding.try_next = {
      "torch.compile the function that holds the chain: Inductor writes one kernel for it",
      "or use a fused operator where torch has one (gelu, silu, addcmul, rms_norm, ...)"};
  const auto largest = std::max_element(
      groups.begin(), groups.end(),
      [](const auto& a, const auto& b) { return a.second.saved_ns < b.second.saved_ns; });
  if (largest == groups.end()) return;
  finding.action = compile_action(facts, largest->second);
  if (advise_on_left_out(facts, largest->second.op, finding) ||
      !is_compiled_to_operators(facts, largest->second.op))
    return;
  finding.try_next = {
      "the largest chain is in a region of torch.compile, and no kernel of the trace was "
      "generated: backend=\"inductor\", the default, writes one kernel for a chain; eager and "
      "aot_eager are for finding bugs"};
  finding.action = say(kUseInductor);
}

Finding tell_unfused_chain(const Facts& facts, const UnfusedChains& measured) {
  const auto& [by_threads, groups, chains, gpu_ns, saved_ns, waits_ns, bandwidth_is_known,
               kernels] = measured;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  // Chains per step, rounded; if there is less than one per step, those of all steps.
  const std::uint64_t steps = step_count(facts);
  const bool is_even = chains % steps == 0, is_of_step = chains >= steps;
  const std::uint64_t shown = is_of_step ? a_step(facts, chains) : chains;
  const bool is_rounded = is_of_step && !is_even;
  Finding finding;
  const std::int64_t kernels_ns = facts.per_step(gpu_ns), between_ns = facts.per_step(waits_ns);
  const std::int64_t at_most_ns = facts.per_step(saved_ns);
  finding.verdict =
      say(facts,
          std::string(
              by_threads
                  ? "Elementwise kernels of one size, by their grids, run one after the other: "
                  : "Elementwise kernels run one after the other on tensors of the same size: ") +
              (is_rounded ? "about " : "") +
              "{} [chain|chains] of two or more{} [takes|take] {} [per step]",
          {count(shown),
           text(!facts.steps.marked ? ""
                : is_of_step        ? " in each step"
                                    : fmt::format(" in {} steps", steps)),
           ns(kernels_ns)});
  if (between_ns > 0) {
    finding.verdict.pattern += shown == 1
                                   ? ", and the GPU waits {} between its kernels for launches"
                                   : ", and the GPU waits {} between their kernels for launches";
    finding.verdict.values.push_back(ns(between_ns));
  }
  append(finding.verdict,
         say(facts, "; one kernel for each chain would save at most {} [per step].",
             {ns(at_most_ns)}));
  finding.at_stake_ns = at_most_ns;
  finding.at_stake_ratio = share_of(saved_ns, wall_ns);
  finding.all_work = kernels;
  Sentence sum = say("{} of kernels", {ns(kernels_ns)});
  if (between_ns > 0) {
    sum.pattern += " + {} in which the GPU waited between them";
    sum.values.push_back(ns(between_ns));
  }
  sum.pattern += " - {} that stays = {}";
  sum.values.push_back(ns(kernels_ns + between_ns - at_most_ns));
  sum.values.push_back(ns(at_most_ns));
  finding.arithmetic.push_back(std::move(sum));
  finding.arithmetic.push_back(
      by_threads ? say("one kernel takes at least as long as the shortest of its chain; shapes "
                       "were not recorded, so kernels whose grids have room for equally many "
                       "elements count as of one size, and the bound is loose")
      : bandwidth_is_known
          ? say("one kernel takes at least as long as the shortest of its chain, and where the "
                "tensors exceed the cache, as long as reading the first input and writing the last "
                "output at the data sheet's bandwidth")
          : say("one kernel takes at least as long as the shortest of its chain; this GPU's "
                "bandwidth is not known, so the bound is loose"));
  add_chains(facts, groups, by_threads, finding);
  finding.gain_is_bound = by_threads;
  finding.confidence = facts.confidence();
  finding.sample_count = chains;
  finding.sample_noun = "chain";
  finding.brief =
      say(facts,
          std::string(is_rounded ? "About " : "") +
              "{} [chain|chains] of elementwise kernels{} could be [one kernel|one kernel each]",
          {count(shown),
           text(facts.steps.marked && !is_of_step ? fmt::format(" in {} steps", steps) : "")});
  advise_on_chains(facts, groups, finding);
  return finding;
}

}  // namespace

std::vector<FusableChain> fusable_chains(const Facts& facts) {
  std::vector<FusableChain> fusable;
  if (!facts.main_device) return fusable;
  const auto measured = measure_chains(facts);
  const auto* chains = std::get_if<UnfusedChains>(&measured);
  if (!chains) return fusable;
  for (auto& [text, group] : ranked_chains(chains->groups))
    fusable.push_back({text, group.saved_ns, std::move(group.kernels)});
  return fusable;
}

std::int64_t saved_by_one_kernel_for_each_chain_ns(const Facts& facts) {
  if (!facts.main_device || is_host_bound(facts)) return 0;
  const auto measured = measure_chains(facts);
  const auto* chains = std::get_if<UnfusedChains>(&measured);
  return chains ? chains->saved_ns : 0;
}

extern constinit const Rule unfused_chain_rule = {
    .id = "unfused-chain",
    .question = "do elementwise kernels run one by one that could be fused into one?",
    .meant_by = "fuse",
    .order = 670,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_unfused_chain, tell_unfused_chain>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
