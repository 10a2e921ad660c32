// Normalisations, softmax and rotary embeddings that are written as single operators, although a
// fused kernel exists for each.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/left_out_of_compiling.h"
#include "lanescope/explain/rules/parsed_kernel_names.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/model/names_where.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;

namespace {

// The operators of a stream's kernels. "?" marks an optional one, "a|b" is one of two, an empty
// text ends the pattern. Casts ("copy") may be anywhere inside.
struct Pattern {
  const char* what = nullptr;
  const char* instead = nullptr;
  std::array<std::string_view, 12> ops;
};
constexpr Pattern kPatterns[] = {
    {"RMSNorm",
     "torch.nn.RMSNorm / F.rms_norm",
     {"?copy", "pow|square", "mean", "add", "rsqrt", "mul", "?copy", "?mul"}},
    {"LayerNorm",
     "F.layer_norm",
     {"?copy", "mean", "sub", "pow|square|mul", "mean", "add", "sqrt|rsqrt", "div|mul", "?copy",
      "?mul", "?add"}},
    {"softmax", "F.softmax", {"max|amax", "sub", "exp", "sum", "div"}},
    {"rotary embedding", "a fused rotary kernel", {"?mul", "neg", "cat", "mul", "add"}},
    {"tanh GELU",
     "F.gelu(approximate=\"tanh\")",
     {"?mul", "pow", "mul", "add", "mul", "tanh", "add", "mul"}},
};

// True: the kernel passes over the whole tensor (or half of it), so no fused kernel is faster than
// the shortest of these. Sums, maxima and what is computed from them are small.
bool is_full_pass(std::string_view op) {
  return op == "mul" || op == "div" || op == "sub" || op == "pow" || op == "square" ||
         op == "exp" || op == "tanh" || op == "neg" || op == "copy";
}

std::string_view short_op(std::string_view op) {
  if (op.starts_with("aten::")) op.remove_prefix(6);
  if (op.ends_with("_")) op.remove_suffix(1);
  if (op.starts_with("_") && op.size() > 1) op.remove_prefix(1);
  return op;
}

bool is_one_of(std::string_view choices, std::string_view op) {
  while (!choices.empty()) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == op) return true;
    choices = bar == std::string_view::npos ? std::string_view() : choices.substr(bar + 1);
  }
  return false;
}

struct NormEntry {
  const DeviceWork* work = nullptr;
  std::string_view op;
  SliceId op_slice = kNone<SliceId>;
};

struct FoundNorm {
  std::uint64_t runs = 0;
  std::int64_t gpu_ns = 0, saved_ns = 0, longest_ns = 0;
  SliceId example = kNone<SliceId>, op = kNone<SliceId>;
  std::vector<SliceId> all;  // a kernel of each run
};

bool is_cast_node(std::string_view op) { return op == "copy" || op == "to" || op == "to_copy"; }

// Could any of the patterns begin with it?
bool may_begin(std::string_view op) {
  for (const Pattern& pattern : kPatterns)
    for (std::string_view wanted : pattern.ops) {
      const bool optional = wanted.starts_with("?");
      if (optional) wanted.remove_prefix(1);
      if (is_one_of(wanted, op) || (wanted == "copy" && is_cast_node(op))) return true;
      if (!optional) break;
    }
  return false;
}

// The entries of the pattern that begins at `at`; empty: none does.
void match(const Pattern& pattern, std::span<const NormEntry> entries, std::size_t at,
           std::vector<std::size_t>& taken) {
  taken.clear();
  std::size_t i = at;
  for (std::string_view wanted : pattern.ops) {
    if (wanted.empty()) break;
    const bool optional = wanted.starts_with("?");
    if (optional) wanted.remove_prefix(1);
    const auto fits = [&](std::size_t k) {
      return k < entries.size() && (is_one_of(wanted, entries[k].op) ||
                                    (wanted == "copy" && is_cast_node(entries[k].op)));
    };
    if (optional) {
      if (fits(i)) taken.push_back(i++);
      continue;
    }
    std::size_t cast = i;
    while (i > at && cast < entries.size() && is_cast_node(entries[cast].op)) ++cast;
    if (!fits(cast)) {
      taken.clear();
      return;
    }
    while (i < cast) taken.push_back(i++);
    taken.push_back(i++);
  }
}

struct UnfusedNorm {
  std::array<FoundNorm, std::size(kPatterns)> found;
  std::uint64_t runs = 0;
  std::int64_t gpu_ns = 0;
  std::int64_t saved_ns = 0;
  std::int64_t waits_ns = 0;
  std::vector<std::size_t> ranked;
};

std::optional<UnfusedNorm> measure_unfused_norm(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const KernelNames names(facts);
  std::map<std::uint32_t, std::vector<NormEntry>> streams;
  for (const DeviceWork* work : steady_work(facts)) {
    const SliceId op = facts.links.op_of[raw(work->slice)];
    const bool from_op = trace.kind(work->slice) == CategoryKind::kKernel && op != kNone<SliceId> &&
                         trace.kind(op) == CategoryKind::kCpuOp &&
                         trace.name(op).starts_with("aten::") &&
                         names.of(work->slice).library == "ATen";
    streams[raw(trace.slices().track[raw(work->slice)])].push_back(
        {work, from_op ? short_op(trace.name(op)) : std::string_view(), op});
  }
  std::array<FoundNorm, std::size(kPatterns)> found{};
  std::vector<std::size_t> taken;
  NamesWhere begins(trace, [](std::string_view op) { return may_begin(short_op(op)); });
  std::int64_t gpu_ns = 0, saved_ns = 0, waits_ns = 0;
  std::uint64_t runs = 0;
  for (const auto& [track, entries] : streams)
    for (std::size_t at = 0; at < entries.size();) {
      taken.clear();
      const bool is_begin = !entries[at].op.empty() && begins(entries[at].op_slice);
      for (std::size_t k = 0; is_begin && k < std::size(kPatterns) && taken.empty(); ++k) {
        match(kPatterns[k], entries, at, taken);
        if (taken.empty()) continue;
        std::int64_t sum = 0, least = -1;
        bool casts = false;
        for (const std::size_t i : taken) {
          const std::int64_t dur_ns = entries[i].work->end_ns - entries[i].work->start_ns;
          sum += dur_ns;
          casts = casts || is_cast_node(entries[i].op);
          if (is_full_pass(entries[i].op) && (least < 0 || dur_ns < least)) least = dur_ns;
        }
        // Between casts, the types are wider than those that the fused kernel reads and writes.
        if (casts) least /= 2;
        const std::int64_t waits = launch_waits_within(facts, entries[taken.front()].work->start_ns,
                                                       entries[taken.back()].work->end_ns);
        const std::int64_t saved = sum - std::max<std::int64_t>(0, least) + waits;
        waits_ns += waits;
        FoundNorm& each = found[k];
        ++each.runs;
        each.gpu_ns += sum;
        each.saved_ns += saved;
        if (sum > each.longest_ns) {
          each.longest_ns = sum;
          // Casts at its start and end may belong to the code around it.
          const NormEntry& middle = entries[taken[taken.size() / 2]];
          each.example = middle.work->slice;
          each.op = middle.op_slice;
        }
        each.all.push_back(entries[taken[taken.size() / 2]].work->slice);
        ++runs;
        gpu_ns += sum;
        saved_ns += saved;
      }
      at = taken.empty() ? at + 1 : taken.back() + 1;
    }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (is_thin(facts) || share_of(saved_ns, wall_ns) < 0.01) return std::nullopt;
  std::vector<std::size_t> ranked;
  for (std::size_t k = 0; k < found.size(); ++k)
    if (found[k].runs > 0) ranked.push_back(k);
  sort_rows(ranked.begin(), ranked.end(),
            [&](std::size_t a, std::size_t b) { return found[a].saved_ns > found[b].saved_ns; });
  return UnfusedNorm{found, runs, gpu_ns, saved_ns, waits_ns, std::move(ranked)};
}

// Names each kind with at least a tenth of the time at stake: one alone would not save all.
void tell_first_screen(const Facts& facts, const UnfusedNorm& measured, Finding& finding) {
  std::string action = "Use ";
  const std::size_t steps = facts.selection.steady.size();
  std::size_t named = 0;
  for (const std::size_t k : measured.ranked) {
    const FoundNorm& each = measured.found[k];
    if (named > 0 && each.saved_ns * 10 < measured.saved_ns) break;
    if (named > 0) {
      append(finding.brief, say(", "));
      action += ", ";
    }
    append(finding.brief, say("{} x {}", {count(each.runs / steps), text(kPatterns[k].what)}));
    action += kPatterns[k].instead;
    ++named;
  }
  if (named == 1) {
    const std::size_t k = measured.ranked.front();
    finding.brief = say(facts, "{} runs operator by operator, {} [time|times] [per step]",
                        {text(kPatterns[k].what), count(measured.found[k].runs / steps)});
  } else {
    append(finding.brief, say(facts, " [per step] run operator by operator"));
  }
  finding.action = say("{}, or torch.compile the module", {text(std::move(action))});
}

Finding tell_unfused_norm(const Facts& facts, const UnfusedNorm& measured) {
  const auto& [found, runs, gpu_ns, saved_ns, waits_ns, ranked] = measured;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  const std::int64_t gpu = facts.per_step(gpu_ns), waits = facts.per_step(waits_ns);
  const std::int64_t saved = facts.per_step(saved_ns);
  finding.verdict = say(facts,
                        "Norms, softmax or rotary embeddings run operator by operator: {} such "
                        "[run|runs] [per step] [takes|take] {} of GPU time",
                        {count(runs / facts.selection.steady.size()), ns(gpu)});
  if (waits > 0) {
    finding.verdict.pattern += ", and the GPU waits {} between their kernels for launches";
    finding.verdict.values.push_back(ns(waits));
  }
  append(finding.verdict,
         say(facts, "; fused kernels would save at most {} [per step].", {ns(saved)}));
  finding.at_stake_ns = saved;
  finding.at_stake_ratio = share_of(saved_ns, wall_ns);
  Sentence sum = sum_of({{"kernels", gpu}, {"waits of the GPU between them", waits}});
  sum.pattern +=
      " - {} that stays = {}: a fused kernel takes at least the shortest pass over the tensor, or "
      "half of it where types change inside";
  sum.values.push_back(ns(gpu + waits - saved));
  sum.values.push_back(ns(saved));
  finding.arithmetic.push_back(std::move(sum));
  for (const std::size_t k : ranked) {
    Sentence line = say(facts, "{} x{}: {} [per step]; instead: {}",
                        {text(kPatterns[k].what), count(found[k].runs),
                         ns(facts.per_step(found[k].gpu_ns)), text(kPatterns[k].instead)});
    add_line(facts, found[k].op, line);
    finding.evidence.push_back({found[k].example, std::move(line)});
    finding.all_work.insert(finding.all_work.end(), found[k].all.begin(), found[k].all.end());
  }
  finding.try_next = {"use the fused operator named above, or torch.compile the module",
                      "a fused kernel also keeps the sums in fp32 without writing them to memory"};
  finding.confidence = facts.confidence();
  finding.sample_count = runs;
  finding.sample_noun = "run";
  finding.explains.push_back({"back-and-forth", finding.at_stake_ns});
  tell_first_screen(facts, measured, finding);
  const SliceId op = found[ranked.front()].op;
  if (!advise_on_left_out(facts, op, finding) && is_compiled_to_operators(facts, op)) {
    finding.action = say(kUseInductor);
    finding.try_next.front() =
        "use backend=\"inductor\", which generates such kernels, or the fused operator named above";
  }
  return finding;
}

}  // namespace

extern constinit const Rule unfused_norm_rule = {
    .id = "unfused-norm",
    .question = "do norms, softmax or rotary embeddings run operator by operator?",
    .meant_by = "fuse",
    .order = 680,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_unfused_norm, tell_unfused_norm>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
