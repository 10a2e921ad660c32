// Copies and memsets run while nothing computes.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/gloo_waits.h"
#include "lanescope/explain/rules/launch_mode.h"
#include "lanescope/explain/rules/left_out_of_compiling.h"
#include "lanescope/explain/rules/loader_waits.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::WorkClass;

namespace {

constexpr double kLeastExposedShare = 0.03;
constexpr double kLeastOfLine = 0.25;  // of the time of the copies of one kind
// Parts of the names of frames and ranges that bring another batch.
constexpr std::array<std::string_view, 5> kBatchFrames = {"__next__", "function next", "queue",
                                                          "loads>", "): recv"};

struct Kind {
  std::uint64_t copies = 0;
  std::int64_t exposed_ns = 0, size_bytes = 0;
  SliceId longest = kNone<SliceId>;
};

// Operators that copy for themselves, such as an inverse Fourier transform, which overwrites what it reads, or Gloo, which sends from
// the CPU: no line of the program can leave that copy out.
bool is_own_copy(const Facts& facts, SliceId work) {
  if (is_copy_of_host_collective(facts, work)) return true;
  static constexpr std::array<std::string_view, 12> kOwners = {
      "aten::sort",   "aten::argsort", "aten::topk",    "aten::kthvalue",
      "aten::median", "aten::_unique", "aten::unique",  "aten::fft_",
      "aten::_fft_",  "aten::stft",    "aten::linalg_", "aten::_linalg_"};
  return facts.trace->name(work).find("DtoD") != std::string_view::npos &&
         ancestor_where(facts, facts.links.op_of[raw(work)], [](std::string_view op) {
           return std::any_of(kOwners.begin(), kOwners.end(),
                              [&](std::string_view owner) { return op.starts_with(owner); });
         }) != kNone<SliceId>;
}

void add_evidence(const Facts& facts, const std::string& label, const Kind& kind,
                  Finding& finding) {
  Evidence evidence{kind.longest, say(facts, "{} x{}: {}, alone for {} [per step]",
                                      {name(label), count(kind.copies), bytes(kind.size_bytes),
                                       ns(facts.per_step(kind.exposed_ns))})};
  const SliceId op = facts.links.op_of[raw(kind.longest)];
  if (op != kNone<SliceId>) {
    evidence.text.pattern += "; the longest launched by {}";
    evidence.text.values.push_back(name(facts.trace->name(op)));
    if (facts.trace->name(op) == "aten::addmm" && label.find("DtoD") != std::string::npos)
      finding.arithmetic.push_back(
          say("aten::addmm copies the matrix that it adds into its output before the GEMM adds to "
              "it"));
  }
  finding.evidence.push_back(std::move(evidence));
}

// Copies that one operator makes at one line of the program.
struct CopiesOfLine {
  std::string op, line;
  Kind copies;
};

// One tensor that is sent to the GPU again in a step, from another module or line.
struct SentAgain {
  std::uint64_t times = 0, tensors = 0;  // sent, of all steps; and how many tensors that were
  std::int64_t size_bytes = 0;           // of all times but the first
  SliceId first = kNone<SliceId>, again = kNone<SliceId>;
};

struct ExposedCopies {
  std::int64_t exposed_ns = 0;
  std::map<std::string, Kind> kinds;
  std::optional<CopiesOfLine> most;  // that of the most time; nothing: none has much of it
  std::uint64_t copies = 0;
  SentAgain again;
};

void add_copy(const Facts& facts, const DeviceWork& work, Kind& kind) {
  const Trace& trace = *facts.trace;
  ++kind.copies;
  kind.exposed_ns += facts.device().timeline.time_within(
      work.start_ns, work.end_ns)[static_cast<std::size_t>(WorkClass::kCopy)];
  kind.size_bytes += trace.slice_args(work.slice).integer(ArgKey::kBytes).value_or(0);
  if (kind.longest == kNone<SliceId> || trace.dur_ns(work.slice) > trace.dur_ns(kind.longest))
    kind.longest = work.slice;
}

// The line with most copies of the kind that takes most time. The action is about it.
std::optional<CopiesOfLine> most_of_one_line(const Facts& facts,
                                             const std::map<std::string, Kind>& kinds) {
  const auto by_time = [](const auto& a, const auto& b) {
    return a.second.exposed_ns < b.second.exposed_ns;
  };
  const auto kind = std::max_element(kinds.begin(), kinds.end(), by_time);
  std::map<std::pair<std::string, std::string>, Kind> lines;
  for (const DeviceWork& work : facts.device().timeline.work) {
    if (work.work != WorkClass::kCopy || !inside(facts.steady_windows, work.start_ns) ||
        facts.trace->name(work.slice) != kind->first || is_own_copy(facts, work.slice))
      continue;
    const SliceId op = outermost_operator_of(facts, work.slice);
    if (op == kNone<SliceId>) continue;
    add_copy(facts, work, lines[{std::string(facts.trace->name(op)), python_line(facts, op)}]);
  }
  const auto most = std::max_element(lines.begin(), lines.end(), by_time);
  if (most == lines.end() ||
      share_of(most->second.exposed_ns, kind->second.exposed_ns) < kLeastOfLine ||
      most->first.first.starts_with(kEvaluateNode))  // which is no operator of the program
    return std::nullopt;
  return CopiesOfLine{most->first.first, most->first.second, most->second};
}

// "<built-in method to of Tensor object at 0x7f5941245f40>" around the operator: which tensor it is called on. Empty: no
// such frame.
std::string_view sender_of(const Trace& trace, SliceId op) {
  constexpr std::uint32_t kFurthestFrame = 4;
  const std::uint32_t first = trace.track(op).first_slice;
  for (std::uint32_t i = raw(op); i > first && raw(op) - i < kFurthestFrame; --i) {
    const std::string_view frame = trace.name(SliceId{i - 1});
    if ((frame.starts_with("<built-in method to of Tensor object at 0x") ||
         frame.starts_with("<built-in method cuda of Tensor object at 0x")) &&
        trace.end_ns(SliceId{i - 1}) >= trace.end_ns(op))
      return frame;
  }
  return {};
}

// Between these calls another tensor of that size may have come to the address of the first: a view, a part, a batch.
bool may_make_tensor(const Facts& facts, SliceId slice, double elements) {
  const Trace& trace = *facts.trace;
  const std::string_view label = trace.name(slice);
  if (trace.kind(slice) != CategoryKind::kCpuOp)
    return std::any_of(kBatchFrames.begin(), kBatchFrames.end(),
                       [&](std::string_view word) { return label.find(word) != label.npos; });
  if (is_factory(label) || label == "aten::lift_fresh") return true;
  static constexpr std::array<std::string_view, 7> kMakers = {
      "aten::stack", "aten::cat",        "aten::index",     "aten::index_select",
      "aten::clone", "aten::pin_memory", "aten::contiguous"};
  if (!is_view(label) && std::find(kMakers.begin(), kMakers.end(), label) == kMakers.end())
    return false;
  const auto taken = operator_inputs(trace, slice).tensor(0);
  return !taken || taken->elements() >= elements;
}

bool sends_the_same(const Facts& facts, SliceId first, SliceId again) {
  const Trace& trace = *facts.trace;
  if (trace.slices().track[raw(first)] != trace.slices().track[raw(again)] ||
      (module_around(trace, first) == module_around(trace, again) &&
       python_line(facts, first) == python_line(facts, again)))
    return false;
  const auto a = operator_inputs(trace, first).tensor(0),
             b = operator_inputs(trace, again).tensor(0);
  if (!a || !b || a->dims != b->dims || a->type != b->type) return false;
  for (std::uint32_t i = raw(first) + 1; i < raw(again); ++i) {
    const SliceId slice{i};
    if (trace.start_ns(slice) < trace.end_ns(first) ||
        (trace.kind(slice) == CategoryKind::kCpuOp && outermost_around(facts, slice) != slice))
      continue;
    if (may_make_tensor(facts, slice, a->elements())) return false;
  }
  return true;
}

SentAgain sent_again(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<std::pair<std::size_t, std::string_view>, std::vector<SliceId>> sent;
  for (const DeviceWork& work : facts.device().timeline.work) {
    if (work.work != WorkClass::kCopy || !inside(facts.steady_windows, work.start_ns) ||
        trace.name(work.slice).find("HtoD") == std::string_view::npos)
      continue;
    const SliceId op = outermost_operator_of(facts, work.slice);
    if (op == kNone<SliceId>) continue;
    const std::size_t step = steady_step_at(facts, trace.start_ns(op));
    if (const std::string_view sender = sender_of(trace, op);
        !sender.empty() && step != ~std::size_t{0})
      sent[{step, sender}].push_back(op);
  }
  constexpr std::size_t kMostSends = 16;  // in a step: more are no batch for several modules
  SentAgain found;
  for (auto& [key, calls] : sent) {
    if (calls.size() > kMostSends) continue;
    std::sort(calls.begin(), calls.end());
    std::uint64_t times = 1;
    for (std::size_t i = 1; i < calls.size(); ++i) {
      if (!sends_the_same(facts, calls[i - 1], calls[i])) continue;
      ++times;
      const auto tensor = operator_inputs(trace, calls[i]).tensor(0);
      found.size_bytes += static_cast<std::int64_t>(tensor->dense_bytes());
      if (found.first == kNone<SliceId>) {
        found.first = calls[i - 1];
        found.again = calls[i];
      }
    }
    if (times == 1) continue;
    found.times += times;
    ++found.tensors;
  }
  return found;
}

// Pinned copies to the GPU on streams that do nothing else.
bool is_on_own_stream(const Facts& facts, std::string_view copies) {
  if (copies.find("HtoD") == copies.npos || copies.find("Pinned") == copies.npos) return false;
  const Trace& trace = *facts.trace;
  std::set<TrackId> computing, copying;
  for (const DeviceWork& work : facts.device().timeline.work) {
    const TrackId stream = trace.slices().track[raw(work.slice)];
    if (work.work != WorkClass::kCopy)
      computing.insert(stream);
    else if (trace.name(work.slice) == copies && inside(facts.steady_windows, work.start_ns))
      copying.insert(stream);
  }
  return std::none_of(copying.begin(), copying.end(),
                      [&](TrackId stream) { return computing.contains(stream); });
}

// The program sends ahead on a stream of its own already, and most of that time the GPU computes.
bool is_overlapped(const Facts& facts, const std::map<std::string, Kind>& kinds) {
  const auto most = std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
    return a.second.exposed_ns < b.second.exposed_ns;
  });
  if (!is_on_own_stream(facts, most->first)) return false;
  std::int64_t copying_ns = 0;
  for (const DeviceWork& work : facts.device().timeline.work)
    if (facts.trace->name(work.slice) == most->first && inside(facts.steady_windows, work.start_ns))
      copying_ns += work.end_ns - work.start_ns;
  return most->second.exposed_ns * 2 < copying_ns;
}

std::optional<ExposedCopies> measure_exposed_copy(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& part = facts.wall.partition;
  if (is_thin(facts) || share_of(part.exposed_copy_ns, part.wall_ns) < kLeastExposedShare)
    return std::nullopt;
  std::map<std::string, Kind> kinds;
  Kind own;
  std::uint64_t copies = 0;
  for (const DeviceWork& work : facts.device().timeline.work) {
    if (work.work != WorkClass::kCopy || !inside(facts.steady_windows, work.start_ns)) continue;
    if (is_own_copy(facts, work.slice)) {
      add_copy(facts, work, own);
      continue;
    }
    ++copies;
    add_copy(facts, work, kinds[std::string(trace.name(work.slice))]);
  }
  if (copies == 0) return std::nullopt;  // a copy from before the steady steps reaches into them
  const std::int64_t exposed_ns = part.exposed_copy_ns - own.exposed_ns;
  if (share_of(exposed_ns, part.wall_ns) < kLeastExposedShare) return std::nullopt;
  if (is_overlapped(facts, kinds)) return std::nullopt;
  auto most = most_of_one_line(facts, kinds);
  return ExposedCopies{.exposed_ns = exposed_ns,
                       .kinds = std::move(kinds),
                       .most = std::move(most),
                       .copies = copies,
                       .again = sent_again(facts)};
}

// Memory that is filled, not copied: "Memset (Device)".
bool is_fill(std::string_view copies) { return copies.starts_with("Memset"); }

// The operator of the copy moves numbers of two bytes or less: no smaller type is to be had.
bool has_small_type(const Facts& facts, SliceId copy) {
  constexpr std::int64_t kSmallTypeBytes = 2;
  const SliceId op = facts.links.op_of[raw(copy)];
  if (op == kNone<SliceId>) return false;
  const auto tensor = operator_inputs(*facts.trace, op).tensor(0);
  return tensor && tensor->type->size_bytes <= kSmallTypeBytes;
}

// Nodes of autograd whose copies are not of operators that the forward code calls: compiling it would spare none of them.
std::optional<Sentence> action_for_own_node(const Facts& facts, std::string_view label) {
  if (!label.starts_with(kEvaluateNode)) return std::nullopt;
  if (label.ends_with("AsStridedBackward0"))
    return say(
        "A view that is written in place, or as_strided(), makes these copies: write into a new "
        "tensor, or view it otherwise");
  if (!is_accumulating_node(label)) return std::nullopt;
  if (!slices_starting_with(facts, "DistributedDataParallel.forward").empty())
    return say(
        "DistributedDataParallel copies gradients into buckets: gradient_as_bucket_view=True");
  return say(
      "AccumulateGrad copies a gradient that a hook keeps, or whose layout is not its "
      "parameter's: change that");
}

// What to do about copies of a kind: "Memcpy HtoD (Pageable -> Device)".
Sentence action_for(const Facts& facts, std::string_view copies, SliceId longest,
                    bool of_convolution) {
  if (is_fill(copies))
    return of_convolution
               ? say("cuDNN fills buffers of its own with zeros: try channels that are a multiple "
                     "of 8, or channels_last")
               : say("Use torch.empty where all of it is written later, and fill buffers that stay "
                     "only once");
  const auto holds = [&](std::string_view part) {
    return copies.find(part) != std::string_view::npos;
  };
  if (is_on_own_stream(facts, copies))
    return has_small_type(facts, longest)
               ? say("They have a stream of their own: start them earlier, or keep data on the GPU")
               : say("They have a stream of their own: start them earlier, or send fewer bytes "
                     "(uint8, bf16)");
  // A copy that is already pinned only has to begin earlier.
  if (holds("HtoD") && holds("Pinned"))
    return has_small_type(facts, longest)
               ? say("Copy the next batch a step ahead on a stream of its own")
               : say("Copy the next batch a step ahead on a stream of its own, or send fewer bytes "
                     "(uint8, bf16)");
  if (holds("HtoD"))
    return has_loader(facts)
               ? say("Use DataLoader(pin_memory=True), and .to(device, non_blocking=True) a step "
                     "ahead")
               : say("Copy from a pinned buffer kept across steps (pin_memory()), "
                     ".to(device, non_blocking=True) a step ahead");
  if (holds("DtoH") && holds("Pinned"))
    return say(
        "The memory is pinned already: copy on a separate stream while the GPU computes, or copy "
        "less");
  if (holds("DtoH"))
    return say("Copy results into pinned memory with non_blocking=True; read them a step later");
  const SliceId caller = outermost_operator_of(facts, longest);
  const std::string_view label = caller == kNone<SliceId> ? "" : facts.trace->name(caller);
  // The node of a write into a part of a tensor copies the gradient of all of it.
  if (label.starts_with(kEvaluateNode) && label.ends_with("CopySlices")) {
    const ActivationWrite write = write_of_activation(facts, caller);
    if (write.activation)
      return write.is_of_part == true
                 ? say("An activation writes into a part of a tensor: use one that is not in "
                       "place, "
                       "and keep the parts apart")
                 : say("If nothing reads the tensor behind the view: use an activation that is not "
                       "in place");
    return say(
        "The forward pass writes into parts of a tensor (x[part] = y): join the parts with "
        "torch.cat or stack instead");
  }
  if (const std::optional<Sentence> own = action_for_own_node(facts, label)) return *own;
  if (label.starts_with(kEvaluateNode) &&
      is_compiled_to_operators(facts, facts.links.op_of[raw(longest)]))
    return say(kUseInductor);
  if (label.starts_with(kEvaluateNode) && launch_mode_of(facts) == LaunchMode::kCompiled)
    return say(
        "Autograd makes these copies for code that is not compiled: torch.compile that, too");
  if (label.starts_with(kEvaluateNode))
    return say(
        "Autograd makes these copies: torch.compile the forward code, which fuses what it can");
  // A copy may be what the program wants: the trace does not show whether the first one is read again.
  return say(
      "If nothing reads the original again: leave out clone() and work on it; or let torch.compile "
      "fuse the copies");
}

std::uint64_t copies_per_step(const Facts& facts, const CopiesOfLine& line) {
  return std::max<std::uint64_t>(1, line.copies.copies / facts.selection.steady.size());
}

// The first evidence: the first screen shows its place.
void add_line_of_copies(const Facts& facts, const CopiesOfLine& line, Finding& finding) {
  Evidence evidence{line.copies.longest,
                    say(facts,
                        is_fill(facts.trace->name(line.copies.longest))
                            ? "filled {} [time|times] [per step] by {}: {}, alone for {}"
                            : "{} [copy|copies] [per step] by {}: {}, alone for {}",
                        {count(copies_per_step(facts, line)), name(line.op),
                         bytes(facts.per_step(line.copies.size_bytes)),
                         ns(facts.per_step(line.copies.exposed_ns))})};
  if (!line.line.empty()) {
    evidence.text.pattern += "; called at {}";
    evidence.text.values.push_back(name(line.line));
  }
  finding.evidence.push_back(std::move(evidence));
}

Finding tell_exposed_copy(const Facts& facts, const ExposedCopies& found) {
  const auto& part = facts.wall.partition;
  Finding finding;
  finding.verdict = say(facts,
                        "Copies hold up the GPU: {} of [a step's] {} ({}) go to copies and memsets "
                        "while the GPU computes nothing.",
                        {ns(facts.per_step(found.exposed_ns)), ns(facts.per_step(part.wall_ns)),
                         ratio(found.exposed_ns, part.wall_ns)});
  finding.at_stake_ns = facts.per_step(found.exposed_ns);
  finding.at_stake_ratio = share_of(found.exposed_ns, part.wall_ns);
  std::vector<std::pair<std::string, Kind>> ranked(found.kinds.begin(), found.kinds.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.exposed_ns > b.second.exposed_ns; });
  if (found.most) add_line_of_copies(facts, *found.most, finding);
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i)
    if (i == 0 || wide(ranked[i].second.exposed_ns) * 50 > found.exposed_ns)  // the rest is noise
      add_evidence(facts, ranked[i].first, ranked[i].second, finding);
  finding.try_next = {
      "for copies of input: use pinned memory, non_blocking=True and a side stream, one step ahead",
      "for copies inside the GPU: change the operator named above, which makes them"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.copies;
  finding.sample_noun = "copy";
  finding.brief = found.most
                      ? say(facts,
                            is_fill(ranked.front().first)
                                ? "Filling memory holds up the GPU: {} [time|times] by {}, {} [per "
                                  "step]"
                                : "Copies hold up the GPU: {} [copy|copies] by {}, {} [per step]",
                            {count(copies_per_step(facts, *found.most)), name(found.most->op),
                             bytes(facts.per_step(found.most->copies.size_bytes))})
                      : say("Copies hold up the GPU: it computes nothing meanwhile");
  finding.action = action_for(facts, ranked.front().first, ranked.front().second.longest,
                              found.most && found.most->op.find("conv") != std::string::npos);
  if (const SentAgain& again = found.again;
      ranked.front().first.find("HtoD") != std::string::npos && again.tensors > 0 &&
      again.tensors >= facts.selection.steady.size() &&
      again.size_bytes * 4 > ranked.front().second.size_bytes) {
    finding.action = say("One tensor is sent {} times: send it once, and use the GPU's copy again",
                         {count(again.times / again.tensors)});
    finding.arithmetic.push_back(
        say(facts,
            "{} of these bytes [per step] send a tensor again: the calls name the same address, "
            "from another module or line, and no call in between makes or cuts out such a tensor",
            {bytes(facts.per_step(again.size_bytes))}));
    finding.evidence.push_back(called_at(facts, again.first, say("one tensor is sent")));
    finding.evidence.push_back(called_at(facts, again.again, say("and sent again")));
  }
  return finding;
}

}  // namespace

extern constinit const Rule exposed_copy_rule = {
    .id = "exposed-copy",
    .question = "do copies hold up the GPU?",
    .meant_by = "copy",
    .order = 70,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_exposed_copy, tell_exposed_copy>,
    .is_regression = true,
    .fix = Fix::kOverlapCopies,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
