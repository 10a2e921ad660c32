// Problem: "some steps take longer" names no cause. Idea: compare what slow steps hold with what the others hold, from the most
// telling event to the least: a frame of torch.save, a range or function that only slow steps have, many copies to the CPU with
// code without events after them, more kernels than usual without a further backward pass. The first of these that is half of
// the additional time is the answer. Cost: one pass over the slices of the thread for each kind.
#include "lanescope/explain/rules/extra_work.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "lanescope/base/wide.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/names/library_frames.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr std::uint64_t kFewestCopies = 8;
constexpr std::int64_t kLeastCopiedBytes = 1'000'000;
constexpr std::int64_t kManyCopiedBytes = 16'000'000;  // also in a few tensors

bool is_step_mark(std::string_view label) { return label.starts_with("ProfilerStep"); }

// "torch/serialization.py(945): save", "transformers/modeling_utils.py(2120): save_pretrained"
bool is_saving_frame(std::string_view frame) {
  if (frame.ends_with("): save") && frame.find("torch/serialization.py(") != frame.npos)
    return true;
  return frame.ends_with("): save_checkpoint") || frame.ends_with("): save_pretrained") ||
         frame.ends_with("): _save_checkpoint");
}

TrackId thread_of_step(const Facts& facts, std::size_t step) {
  const SliceId mark = facts.steps.steps[step].slice;
  if (facts.cpu) return facts.cpu->thread;
  return mark == kNone<SliceId> ? facts.main_thread : facts.trace->slices().track[raw(mark)];
}

Window cpu_window(const Facts& facts, std::size_t step) {
  const analysis::StepRange& range = facts.steps.steps[step];
  return {range.cpu_start_ns, range.cpu_end_ns};
}

// The slices of the steps' thread that begin in a step.
template <typename Visit>
void visit_step(const Facts& facts, std::size_t step, Visit visit) {
  const TrackId thread = thread_of_step(facts, step);
  if (thread == kNone<TrackId>) return;
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(thread);
  const Window window = cpu_window(facts, step);
  const auto* starts = trace.slices().start_ns.data();
  const auto first =
      std::lower_bound(starts + track.first_slice, starts + track.first_slice + track.slice_count,
                       window.start_ns) -
      starts;
  for (auto i = static_cast<std::uint32_t>(first);
       i < track.first_slice + track.slice_count && trace.start_ns(SliceId{i}) < window.end_ns; ++i)
    visit(SliceId{i});
}

// What a step holds of the kinds that are looked for.
struct StepContent {
  std::int64_t save_ns = 0;
  SliceId save = kNone<SliceId>;
  std::uint64_t copies = 0;
  std::int64_t copied_bytes = 0;
  std::int64_t copying_ns = 0;  // of the CPU, in calls that copy to it
  SliceId copy = kNone<SliceId>;
  std::uint64_t kernels = 0, nodes = 0, operators = 0;
  std::int64_t code_ns = 0;  // of the thread without events
};

StepContent content_of(const Facts& facts, std::size_t step) {
  const Trace& trace = *facts.trace;
  StepContent content;
  std::int64_t saved_until_ns = 0;
  SliceId last_copy = kNone<SliceId>;  // an operator may make several
  visit_step(facts, step, [&](SliceId id) {
    const CategoryKind kind = trace.kind(id);
    if (kind == CategoryKind::kPythonFunction) {
      if (!is_saving_frame(trace.name(id)) || trace.start_ns(id) < saved_until_ns) return;
      saved_until_ns = trace.end_ns(id);
      content.save_ns += trace.dur_ns(id);
      if (content.save == kNone<SliceId>) content.save = id;
      return;
    }
    if (kind == CategoryKind::kCpuOp) content.operators += !is_step_mark(trace.name(id));
    if (!is_api_call(kind)) return;
    for (const SliceId work : facts.links.launched_by(id)) {
      content.kernels += trace.kind(work) == CategoryKind::kKernel;
      if (!trace.name(work).starts_with("Memcpy DtoH")) continue;
      const SliceId op = outermost_operator_of(facts, id);
      ++content.copies;
      content.copied_bytes += bytes_of(facts, work);
      const SliceId around = op == kNone<SliceId> ? id : op;
      if (around != last_copy) content.copying_ns += trace.dur_ns(around);
      last_copy = around;
      if (content.copy == kNone<SliceId>) content.copy = id;
    }
  });
  const Window window = cpu_window(facts, step);
  for (const HostShare& share : host_shares(
           facts, {{thread_of_step(facts, step), window.start_ns, window.end_ns, kNone<SliceId>}}))
    if (share.name.empty() || is_step_mark(share.name) ||
        share.kind == CategoryKind::kUserAnnotation || share.kind == CategoryKind::kPythonFunction)
      content.code_ns += share.time_ns;
  return content;
}

// Nodes of autograd that begin in these steps, on any thread.
std::uint64_t count_nodes(const Facts& facts, const std::vector<std::size_t>& steps) {
  std::vector<Window> windows;
  for (const std::size_t step : steps) windows.push_back(cpu_window(facts, step));
  windows = joined(std::move(windows));
  const Trace& trace = *facts.trace;
  std::uint64_t nodes = 0;
  for (const SliceId id : backward_nodes(facts)) nodes += inside(windows, trace.start_ns(id));
  return nodes;
}

StepContent mean_of(const Facts& facts, const std::vector<std::size_t>& steps) {
  StepContent sum;
  for (const std::size_t step : steps) {
    const StepContent each = content_of(facts, step);
    sum.save_ns += each.save_ns;
    sum.copies += each.copies;
    sum.copied_bytes += each.copied_bytes;
    sum.copying_ns += each.copying_ns;
    sum.kernels += each.kernels;
    sum.operators += each.operators;
    sum.code_ns += each.code_ns;
    if (sum.save == kNone<SliceId>) sum.save = each.save;
    if (sum.copy == kNone<SliceId>) sum.copy = each.copy;
  }
  const auto count = static_cast<std::int64_t>(steps.size());
  const auto unsigned_count = static_cast<std::uint64_t>(steps.size());
  sum.save_ns /= count;
  sum.copied_bytes /= count;
  sum.copying_ns /= count;
  sum.code_ns /= count;
  sum.copies /= unsigned_count;
  sum.kernels /= unsigned_count;
  sum.nodes = count_nodes(facts, steps) / unsigned_count;
  sum.operators /= unsigned_count;
  return sum;
}

std::uint64_t more_than(std::uint64_t slow, std::uint64_t usual) {
  return slow > usual ? slow - usual : 0;
}

// Ranges and functions of the program by name: time in a step, those inside of themselves left out.
struct NamedTime {
  std::int64_t time_ns = 0;
  std::uint64_t calls = 0;
  SliceId first = kNone<SliceId>;
  std::int64_t until_ns = 0;
};
using NamedTimes = std::map<std::string_view, NamedTime>;

bool is_program_event(const Trace& trace, SliceId id) {
  const std::string_view label = trace.name(id);
  if (trace.kind(id) == CategoryKind::kUserAnnotation)
    return !is_step_mark(label) && !label.starts_with("Optimizer.") &&
           !label.starts_with("enumerate(DataLoader)");
  return trace.kind(id) == CategoryKind::kPythonFunction &&
         label.find(".py(") != std::string_view::npos && !names::is_of_library(label);
}

NamedTimes named_times(const Facts& facts, const std::vector<std::size_t>& steps) {
  const Trace& trace = *facts.trace;
  NamedTimes times;
  for (const std::size_t step : steps)
    visit_step(facts, step, [&](SliceId id) {
      // One that goes on in the next step is no work of this one, such as a loop around found iterations.
      if (!is_program_event(trace, id) || trace.end_ns(id) > cpu_window(facts, step).end_ns) return;
      NamedTime& named = times[trace.name(id)];
      if (trace.start_ns(id) < named.until_ns) return;
      named.until_ns = trace.end_ns(id);
      named.time_ns += trace.dur_ns(id);
      ++named.calls;
      if (named.first == kNone<SliceId>) named.first = id;
    });
  return times;
}

// The range or function that only slow steps have with the most time; of equal times the outermost, which begins first.
ExtraWork named_work(const Facts& facts, const std::vector<std::size_t>& slow,
                     const std::vector<std::size_t>& usual, std::int64_t excess_ns) {
  const NamedTimes in_slow = named_times(facts, slow), in_usual = named_times(facts, usual);
  const auto count = static_cast<std::int64_t>(slow.size());
  ExtraWork work;
  for (const auto& [label, named] : in_slow) {
    if (in_usual.contains(label) || named.time_ns / count * 2 < excess_ns) continue;
    const bool is_longer = named.time_ns / count > work.time_ns;
    const bool is_outside = named.time_ns / count == work.time_ns && named.first < work.example;
    if (!is_longer && !is_outside) continue;
    work.kind = ExtraWorkKind::kRange;
    work.time_ns = named.time_ns / count;
    work.times = named.calls / slow.size();
    work.example = named.first;
    work.frame = std::string(label);
  }
  return work;
}

}  // namespace

ExtraWork find_extra_work(const Facts& facts, const std::vector<std::size_t>& slow,
                          const std::vector<std::size_t>& usual, std::int64_t excess_ns) {
  const StepContent in_slow = mean_of(facts, slow), in_usual = mean_of(facts, usual);
  ExtraWork work;
  const auto is_half = [&](std::int64_t time_ns) { return wide(time_ns) * 2 >= excess_ns; };
  if (const std::int64_t save_ns = in_slow.save_ns - in_usual.save_ns; is_half(save_ns)) {
    work.kind = ExtraWorkKind::kSave;
    work.time_ns = save_ns;
    work.example = in_slow.save;
    work.bytes = std::max<std::int64_t>(0, in_slow.copied_bytes - in_usual.copied_bytes);
    return work;
  }
  // Iterations that were found may be parts of the program's own steps, such as the requests of one batch.
  const bool is_found = facts.steps.found.has_value();
  if (!is_found)
    if (ExtraWork named = named_work(facts, slow, usual, excess_ns)) return named;
  const std::uint64_t copies = more_than(in_slow.copies, in_usual.copies);
  const std::int64_t size_bytes = in_slow.copied_bytes - in_usual.copied_bytes;
  const std::int64_t copying_ns = in_slow.copying_ns - in_usual.copying_ns;
  const std::int64_t code_ns = std::max<std::int64_t>(0, in_slow.code_ns - in_usual.code_ns);
  const std::uint64_t kernels = more_than(in_slow.kernels, in_usual.kernels);
  if (copies > 0 &&
      size_bytes >= (copies >= kFewestCopies ? kLeastCopiedBytes : kManyCopiedBytes) &&
      kernels < std::max(copies, kFewestCopies) && is_half(copying_ns + code_ns)) {
    work.kind = ExtraWorkKind::kCopies;
    work.time_ns = copying_ns + code_ns;
    work.times = copies;
    work.bytes = size_bytes;
    work.code_ns = code_ns;
    work.example = in_slow.copy;
    return work;
  }
  // Half as many again, or more, in operators that the backward pass does not follow.
  const bool has_gpu = facts.main_device.has_value();
  const std::uint64_t usual_pieces = has_gpu ? in_usual.kernels : in_usual.operators;
  const std::uint64_t pieces = has_gpu ? kernels : more_than(in_slow.operators, in_usual.operators);
  if (!is_found && usual_pieces > 0 && pieces * 2 >= usual_pieces && in_usual.nodes > 0 &&
      more_than(in_slow.nodes, in_usual.nodes) * 10 <= in_usual.nodes) {
    work.kind = ExtraWorkKind::kMoreWork;
    work.time_ns = excess_ns;
    work.times = pieces;
    work.example = facts.steps.steps[slow.front()].slice;
  }
  return work;
}

bool holds_extra_work(const Facts& facts, const ExtraWork& work, std::size_t step) {
  switch (work.kind) {
    case ExtraWorkKind::kNone:
    case ExtraWorkKind::kMoreWork:  // a first step makes more operators of its own
      return false;
    case ExtraWorkKind::kSave:
      return content_of(facts, step).save_ns * 2 >= work.time_ns;
    case ExtraWorkKind::kCopies:
      return content_of(facts, step).copies * 2 >= work.times;
    case ExtraWorkKind::kRange: {
      const NamedTimes times = named_times(facts, {step});
      const auto found = times.find(work.frame);
      return found != times.end() && found->second.time_ns * 2 >= work.time_ns;
    }
  }
  return false;
}

Sentence words_of(const Facts& facts, const ExtraWork& work) {
  switch (work.kind) {
    case ExtraWorkKind::kNone:
      break;
    case ExtraWorkKind::kSave:
      return say("torch.save runs for {}", {ns(work.time_ns)});
    case ExtraWorkKind::kCopies:
      return work.code_ns * 10 < work.time_ns
                 ? say(facts, "{} [tensor|tensors] ({}) [goes|go] to the CPU",
                       {count(work.times), bytes(work.bytes)})
                 : say(facts,
                       "{} [tensor|tensors] ({}) [goes|go] to the CPU, and code without events "
                       "runs for {}",
                       {count(work.times), bytes(work.bytes), ns(work.code_ns)});
    case ExtraWorkKind::kRange:
      return say("{} runs for {}", {name(work.frame), ns(work.time_ns)});
    case ExtraWorkKind::kMoreWork:
      return say(facts,
                 facts.main_device
                     ? "{} more [kernel|kernels], without a further backward pass"
                     : "{} more [operator|operators], without a further backward pass",
                 {count(work.times)});
  }
  return {};
}

Sentence remedy_of(const ExtraWork& work) {
  switch (work.kind) {
    case ExtraWorkKind::kNone:
      break;
    case ExtraWorkKind::kSave:
      return say(
          "Save less often, or write in a thread, from non_blocking copies in pinned memory");
    case ExtraWorkKind::kCopies:
      return say(
          "A checkpoint? Save less often, or in a thread, from non_blocking copies in pinned "
          "memory");
    case ExtraWorkKind::kRange:
      return say("Run {} less often, or outside of the steps", {name(work.frame)});
    case ExtraWorkKind::kMoreWork:
      return say("An evaluation? Less often, on fewer or larger batches, in inference_mode");
  }
  return {};
}

std::vector<std::string> ways_out_of(const ExtraWork& work) {
  switch (work.kind) {
    case ExtraWorkKind::kSave:
    case ExtraWorkKind::kCopies:
      return {"if it is a checkpoint: save less often, or at the end of an epoch",
              "copy the state into pinned memory with non_blocking=True, and write it from another "
              "thread (torch.distributed.checkpoint.async_save does so)"};
    case ExtraWorkKind::kMoreWork:
      return {
          "if it is an evaluation: less often, on fewer or larger batches, under "
          "torch.inference_mode()",
          "read its results once, at the end, and not after each batch"};
    default:
      return {"do it less often, or outside of the steps, in a thread or process of its own"};
  }
}

namespace {

ExtraWork extra_work_of_long(const Facts& facts) {
  if (!facts.selection.long_step || facts.selection.steady.empty()) return {};
  const std::size_t step = *facts.selection.long_step;
  return find_extra_work(
      facts, {step}, facts.selection.steady,
      facts.step_window(step).length_ns() - analysis::median_of_steps(facts.steady_lengths_ns()));
}

}  // namespace

const ExtraWork& extra_work_of_long_step(const Facts& facts) {
  return made_once<extra_work_of_long>(facts);
}

}  // namespace lanescope::explain::rules
