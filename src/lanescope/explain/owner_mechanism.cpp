#include "lanescope/explain/owner_mechanism.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/explain/call_tree.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/owner_advice.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_frames.h"
#include "lanescope/explain/owner_rounds.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/tensor_sizes.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain {
namespace {

using simulate::PathKind;

// More CPU time for a launch than this is not the launching.
constexpr std::int64_t kLongestLaunchingNs = 100'000;

// One in so many of the CPU's time in calls that allocate: these, not the launches, are what to change.
constexpr std::int64_t kLeastOfLaunching = 4;

// Kinds of time on the path. What the CPU does is divided later.
constexpr std::pair<PathKind, Mechanism> kOfKinds[] = {
    {PathKind::kHost, Mechanism::kCpuWork},  {PathKind::kCall, Mechanism::kCpuWork},
    {PathKind::kDelay, Mechanism::kCpuWork}, {PathKind::kCompute, Mechanism::kGpuWork},
    {PathKind::kCopy, Mechanism::kCopying},  {PathKind::kCommunication, Mechanism::kCommunication},
    {PathKind::kData, Mechanism::kData},     {PathKind::kUnexplained, Mechanism::kUnknown}};

std::int64_t time_of(const Owner& owner, Mechanism wanted) {
  std::int64_t time = 0;
  for (const auto& [kind, mechanism] : kOfKinds)
    if (mechanism == wanted) time += owner.of(kind);
  return time;
}

std::int64_t all_cpu_ns(const Owner& owner) { return time_of(owner, Mechanism::kCpuWork); }

// Equal kernels, or launch calls, of which some take much longer: 15 % of the owner's time or more.
bool is_uneven(const Owner& owner, const Spread& spread) {
  return spread.excess_ns * 20 >= owner.total_ns * 3;
}

// So unequal that no call takes about their mean.
bool are_unlike(const Owner& owner, const Spread& spread) {
  constexpr std::int64_t kTimesMedian = 8;
  return is_uneven(owner, spread) && spread.longest_ns > kTimesMedian * spread.median_ns;
}

Sentence gpu_text(const Facts& facts, const Owner& owner) {
  const OwnerWork& work = owner.work;
  const std::uint64_t kernels = a_step(facts, work.launches - std::min(work.copies, work.launches));
  Sentence text = say("GPU work: ");
  const bool has_mean = !are_unlike(owner, work.kernel_spread);
  if (work.top_kernel != kNone<SliceId> && is_most(work.top_kernel_ns, work.gpu_ns)) {
    if (kernels > 1) append(text, say("{} kernels, mostly ", {count(kernels)}));
    append(text, has_mean ? say(kernels > 1 ? "{} of {}" : "{}, {}",
                                {kernel(facts.trace->name(work.top_kernel)),
                                 ns(mean(work.top_kernel_ns, work.top_kernel_count))})
                          : say("{}", {kernel(facts.trace->name(work.top_kernel))}));
  } else {
    append(text, say(facts, "{} [kernel|kernels] of {} on average",
                     {count(a_step(facts, work.launches)), ns(mean(work.gpu_ns, work.launches))}));
  }
  if (is_most(work.rated_ns, work.gpu_ns)) {
    const auto floor = static_cast<std::int64_t>(work.rated_floor_ns);
    append(text, say(is_most(work.rated_by_memory_ns, work.rated_ns)
                         ? "; {} of what the memory's bandwidth allows"
                         : "; {} of what the arithmetic units allow",
                     {ratio(floor, work.rated_ns)}));
  }
  return text;
}

Sentence communication_text(const Facts& facts, const Owner& owner) {
  const OwnerWork& work = owner.work;
  Sentence text =
      say(facts, "communication: {} [kernel|kernels]", {count(a_step(facts, work.launches))});
  if (work.top_kernel != kNone<SliceId>)
    append(text, say(", mostly {} of {}", {kernel(facts.trace->name(work.top_kernel)),
                                           ns(mean(work.top_kernel_ns, work.top_kernel_count))}));
  return text;
}

Sentence copy_text(const Facts& facts, const Owner& owner) {
  const OwnerWork& work = owner.work;
  if (work.longest_copy == kNone<SliceId>) return say("copying");
  Sentence text =
      say(facts, "copying: {} [copy|copies], mostly {}",
          {count(a_step(facts, work.copies)), name(facts.trace->name(work.longest_copy))});
  if (work.copied_bytes > 0 && work.copies_ns > 0) {
    append(text, say(", {} of data",
                     {bytes(work.copied_bytes / static_cast<std::int64_t>(step_count(facts)))}));
    const double rate =
        static_cast<double>(work.copied_bytes) / static_cast<double>(work.copies_ns) * 1e9;
    append(text, say(", {} a second", {bytes(static_cast<std::int64_t>(rate))}));
  }
  return text;
}

Sentence launch_text(const Facts& facts, const Owner& owner) {
  const OwnerWork& work = owner.work;
  const char* pattern =
      work.copies == work.launches
          ? "launching: {} [copy|copies]; the CPU takes {} for [it|each], the GPU {}"
      : work.copies > 0
          ? "launching: {} kernels and copies; the CPU takes {} for each, the GPU {}"
          : "launching: {} [kernel|kernels]; the CPU takes {} for [it|each], the GPU {}";
  return say(facts, pattern,
             {count(a_step(facts, work.launches)), ns(mean(owner.cpu_ns(), work.launches)),
              ns(mean(work.gpu_ns, work.launches))});
}

// The call of the operator that the owner's longest event lies in; kNone: the owner is not one operator.
SliceId longest_call(const Facts& facts, const Owner& owner) {
  if (!is_one_operator(owner)) return kNone<SliceId>;
  const std::string& op = owner.cell.size() == 1 ? owner.cell.front() : owner.name;
  return rules::ancestor_where(facts, cpu_side(facts, owner.example),
                               [&](std::string_view name) { return name == op; });
}

// The longest call makes a tensor of many times its inputs' elements.
Sentence proportion_text(const Facts& facts, const Owner& owner) {
  constexpr double kLeastTimes = 8, kLeastElements = 1 << 20, kWellUsed = 0.4;
  constexpr std::size_t kMostInputs = 3;
  const SliceId call = longest_call(facts, owner);
  if (call == kNone<SliceId>) return {};
  const analysis::TensorArguments inputs = rules::operator_inputs(*facts.trace, call);
  const auto made = rules::made_size(facts.trace->name(call), inputs);
  if (!made) return {};
  // A product that uses the GPU well makes what it is there for.
  if (rules::maker_kind(facts.trace->name(call)) == rules::MakerKind::kProduct &&
      owner.work.rated_floor_ns > kWellUsed * static_cast<double>(owner.work.rated_ns))
    return {};
  double taken = 0;
  for (std::size_t k = 0; k < kMostInputs; ++k)
    if (const auto tensor = inputs.tensor(k))
      taken = std::max(taken, rules::stored_elements(*tensor));
  const double elements = analysis::element_count(*made);
  if (elements < kLeastElements || elements < kLeastTimes * taken) return {};
  return say("; makes {} elements out of {}", {count(static_cast<std::uint64_t>(elements)),
                                               count(static_cast<std::uint64_t>(taken))});
}

// Kernels without a known limit that take many times as long as reading their inputs.
Sentence reading_text(const Facts& facts, const Owner& owner) {
  constexpr double kLeastTimes = 20;
  constexpr std::int64_t kLeastCallNs = 50'000;
  constexpr std::size_t kMostInputs = 4;
  constexpr double kLeastInputBytes = 1e6;
  const OwnerWork& work = owner.work;
  if (!facts.main_device || mechanism_of(owner) != Mechanism::kGpuWork ||
      is_most(work.rated_ns, work.gpu_ns) || work.calls == 0)
    return {};
  const auto bandwidth = kernel_facts(facts).roofline.bandwidth_bytes_per_s;
  const SliceId call = longest_call(facts, owner);
  const std::int64_t each_ns = mean(work.gpu_ns, work.calls);
  if (!bandwidth || call == kNone<SliceId> || each_ns < kLeastCallNs) return {};
  // A node of autograd or compiled code reads what it has saved, too, and that is not recorded.
  if (!facts.trace->name(call).starts_with("aten::")) return {};
  const analysis::TensorArguments inputs = rules::operator_inputs(*facts.trace, call);
  double input_bytes = 0;
  for (std::size_t k = 0; k < kMostInputs; ++k)
    if (const auto tensor = inputs.tensor(k)) input_bytes += tensor->stored_bytes();
  const double read_ns = input_bytes / *bandwidth * 1e9;
  if (input_bytes < kLeastInputBytes || read_ns * kLeastTimes > static_cast<double>(each_ns))
    return {};
  return say("; {} times as long as reading its inputs",
             {factor(each_ns, std::max<std::int64_t>(1, std::llround(read_ns)))});
}

// One operator whose calls are so unequal that their mean says little.
bool has_longer_call(const Facts& facts, const Owner& owner, std::int64_t each_ns) {
  const SliceId longest = longest_call(facts, owner);
  return longest != kNone<SliceId> && facts.trace->dur_ns(longest) * 5 > each_ns * 8;
}

Sentence cpu_text(const Facts& facts, const Owner& owner) {
  const OwnerWork& work = owner.work;
  const std::int64_t each = mean(owner.total_ns, work.calls);
  if (!facts.main_device)
    return owner.kind == OwnerKind::kOperator && work.calls == step_count(facts)
               ? say("CPU time of one call")
           : has_longer_call(facts, owner, each)
               ? say(facts, "CPU time of {} [call|calls], the longest {}",
                     {count(a_step(facts, work.calls)),
                      ns(facts.trace->dur_ns(longest_call(facts, owner)))})
               : say(facts, "CPU time of {} [call|calls], {} each",
                     {count(a_step(facts, work.calls)), ns(each)});
  if (work.launches == 0)
    return say(facts, "work on the CPU: {} [call|calls] of {}, no GPU work",
               {count(a_step(facts, work.calls)), ns(each)});
  return say(facts, "work on the CPU around {} [piece|pieces] of GPU work",
             {count(a_step(facts, work.launches))});
}

const char* short_mechanism(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kCpuWork:
      return "the CPU's";
    case Mechanism::kGpuWork:
      return "the GPU's";
    case Mechanism::kCommunication:
      return "communication";
    case Mechanism::kCopying:
      return "copying";
    case Mechanism::kData:
      return "the DataLoader's";
    default:
      return "not explained";
  }
}

Sentence spread_text(const Owner& owner) {
  const Mechanism mechanism = mechanism_of(owner);
  const bool of_kernels = mechanism == Mechanism::kGpuWork;
  if (!of_kernels && mechanism != Mechanism::kLaunching) return {};
  const Spread& spread = of_kernels ? owner.work.kernel_spread : owner.work.launch_spread;
  if (!is_uneven(owner, spread)) return {};
  return say(of_kernels ? "; unequal: half of these kernels take at most {}, the longest {}"
                        : "; unequal: half of the launch calls take at most {}, the longest {}",
             {ns(spread.median_ns), ns(spread.longest_ns)});
}

// The GPU works for nine tenths of the owner's time or more, summed up. Where the critical path is on the CPU instead, that is because
// the CPU is as far as the GPU there: it does not keep the GPU waiting.
bool is_nearly_all_gpu_work(const Owner& owner) {
  return owner.work.launches > 0 && owner.work.gpu_ns * 10 >= owner.total_ns * 9;
}

// The second kind of an owner's time, if it has a quarter of it.
Sentence other_kind_text(const Owner& owner, Mechanism first) {
  if (first == Mechanism::kData) return {};
  const bool hides_cpu = first == Mechanism::kGpuWork && is_nearly_all_gpu_work(owner);
  const bool is_cpu = first == Mechanism::kLaunching || first == Mechanism::kStartUp ||
                      first == Mechanism::kAllocating || first == Mechanism::kCode;
  if (is_cpu) first = Mechanism::kCpuWork;
  for (const Mechanism other : {Mechanism::kCpuWork, Mechanism::kGpuWork, Mechanism::kCopying,
                                Mechanism::kCommunication, Mechanism::kUnknown}) {
    const std::int64_t time = time_of(owner, other);
    if (hides_cpu && other == Mechanism::kCpuWork) continue;
    if (other != first && time * 4 >= owner.total_ns)
      return say("; {} of this time is {}",
                 {ratio(time, owner.total_ns), text(short_mechanism(other))});
  }
  return {};
}

Sentence sampled_text(const SampledCode& code) {
  Sentence text = say("code, ");
  append(text, describe(code));
  return text;
}

Sentence code_mechanism_text(const Facts& facts, const Owner& owner) {
  if (owner.kind != OwnerKind::kCode &&
      (owner.kind != OwnerKind::kLine || owner.work.calls > step_count(facts))) {
    Sentence text = say(facts, "Python or other code around its {} [call|calls]",
                        {count(a_step(facts, owner.work.calls))});
    if (!owner.frame.empty())
      append(text, say(", {} of it in {}",
                       {ratio(owner.frame_ns, owner.total_ns), name(short_frame(owner.frame))}));
    return text;
  }
  // "Python of train.py:12 step", "code outside of operators": said already.
  const bool is_said =
      owner.around_kind == OwnerKind::kLine ||
      (owner.kind == OwnerKind::kCode && owner.name.empty() && owner.next_name.empty());
  Sentence text = is_most(owner.restart_ns, owner.total_ns)
                      ? say("for {} of it DataLoader.__iter__ starts its workers again",
                            {ratio(owner.restart_ns, owner.total_ns)})
                  : !owner.frame.empty()
                      ? say("code, {} of it in {}",
                            {ratio(owner.frame_ns, owner.total_ns), name(short_frame(owner.frame))})
                  : owner.sampled       ? sampled_text(*owner.sampled)
                  : owner.is_torch_code ? say("torch's own code in it, not the program's")
                  : is_said             ? say("nothing in it is recorded")
                                        : say("Python or other code without events");
  if (!owner.other_event.empty())
    append(text, say("; for {} of it thread {} was in {}",
                     {ratio(owner.other_ns, owner.total_ns), name(owner.other_thread),
                      name(owner.other_event)}));
  else if (facts.main_device)
    append(text, say(", while the GPU waits"));
  return text;
}

// What the table of operators says of this one, or of the one inside that it is made for.
Sentence known_text(const Facts& facts, const Owner& owner) {
  const rules::OperatorAdvice* row = known_operator(facts, owner);
  if (!row) return {};
  return is_one_operator(owner) ? say("; it {}", {text(row->meaning)})
                                : say("; {} {}", {name(row->op), text(row->meaning)});
}

}  // namespace

std::int64_t elements_for_each_used(const Facts& facts, const Owner& owner) {
  constexpr std::int64_t kPartOfBandwidth = 5, kLeastStride = 4;
  constexpr std::size_t kMostInputs = 3;
  constexpr double kLeastElements = 1 << 16;
  const OwnerWork& work = owner.work;
  if (mechanism_of(owner) != Mechanism::kGpuWork || work.top_kernel == kNone<SliceId> ||
      !is_most(work.rated_by_memory_ns, work.gpu_ns) ||
      work.rated_floor_ns * kPartOfBandwidth >= static_cast<double>(work.rated_ns) ||
      facts.trace->name(work.top_kernel).find("elementwise") == std::string_view::npos)
    return 0;
  const SliceId call =
      rules::ancestor_where(facts, cpu_side(facts, owner.example),
                            [](std::string_view name) { return name.starts_with("aten::"); });
  if (call == kNone<SliceId>) return 0;
  const analysis::TensorArguments inputs = rules::operator_inputs(*facts.trace, call);
  double largest = kLeastElements;
  for (std::size_t k = 0; k < kMostInputs; ++k)
    if (const auto tensor = inputs.tensor(k)) largest = std::max(largest, tensor->elements());
  std::int64_t found = 0;
  for (std::size_t k = 0; k < kMostInputs; ++k) {
    const auto tensor = inputs.tensor(k);
    if (!tensor || !tensor->strides || tensor->elements() * 2 < largest) continue;
    std::int64_t stride = 0;  // from one element to the nearest; 0: a single one
    for (std::size_t d = 0; d < tensor->rank(); ++d)
      if (tensor->dims[d] > 1 && (stride == 0 || (*tensor->strides)[d] < stride))
        stride = (*tensor->strides)[d];
    found = std::max(found, stride);
  }
  return found >= kLeastStride ? found : 0;
}

const char* mechanism_name(Mechanism mechanism) {
  constexpr const char* kNames[] = {"gpu_work", "communication", "copying",  "launching",
                                    "start_up", "allocating",    "cpu_work", "code",
                                    "data",     "unknown"};
  return kNames[static_cast<std::size_t>(mechanism)];
}

Mechanism mechanism_of(const Owner& owner) {
  if (owner.kind == OwnerKind::kRange && is_loader(owner.name)) return Mechanism::kData;
  std::pair<std::int64_t, Mechanism> largest{-1, Mechanism::kUnknown};
  for (const auto& [kind, mechanism] : kOfKinds)
    if (const std::int64_t time = time_of(owner, mechanism); time > largest.first)
      largest = {time, mechanism};
  if (largest.second != Mechanism::kCpuWork) return largest.second;
  if (owner.kind == OwnerKind::kCode) return Mechanism::kCode;
  const OwnerWork& work = owner.work;
  if (is_most(work.start_up_ns, owner.total_ns)) return Mechanism::kStartUp;
  if (is_most(work.allocator_ns, owner.total_ns)) return Mechanism::kAllocating;
  if (is_nearly_all_gpu_work(owner)) return Mechanism::kGpuWork;
  if (work.launches > 0 && mean(owner.cpu_ns(), work.launches) <= kLongestLaunchingNs)
    return work.allocator_ns * kLeastOfLaunching > all_cpu_ns(owner) ? Mechanism::kAllocating
                                                                     : Mechanism::kLaunching;
  return is_most(owner.code_ns, all_cpu_ns(owner)) ? Mechanism::kCode : Mechanism::kCpuWork;
}

Sentence mechanism_text(const Facts& facts, const Owner& owner) {
  Sentence text;
  switch (mechanism_of(owner)) {
    case Mechanism::kGpuWork:
      text = gpu_text(facts, owner);
      break;
    case Mechanism::kCommunication:
      text = communication_text(facts, owner);
      break;
    case Mechanism::kCopying:
      text = copy_text(facts, owner);
      break;
    case Mechanism::kLaunching:
      text = launch_text(facts, owner);
      break;
    case Mechanism::kAllocating:
      text = say(facts,
                 "allocating: {} [call that allocates|calls that allocate] or [frees|free] GPU "
                 "memory, {} in all",
                 {count(a_step(facts, owner.work.allocator_calls)),
                  ns(facts.per_step(owner.work.allocator_ns))});
      break;
    case Mechanism::kStartUp:
      text = say(facts,
                 "start-up: {} [call|calls] in which libraries or kernels are used for the first "
                 "time, {} in all",
                 {count(owner.work.start_up_calls), ns(owner.work.start_up_ns)});
      break;
    case Mechanism::kCpuWork:
      text = cpu_text(facts, owner);
      break;
    case Mechanism::kCode:
      text = code_mechanism_text(facts, owner);
      break;
    case Mechanism::kData:
      text = say(owner.name.find("SingleProcess") == std::string::npos
                     ? "waiting for the DataLoader"
                     : "the training process prepares its batches itself (num_workers=0)");
      break;
    case Mechanism::kUnknown:
      text = say("delays that the trace does not explain");
      break;
  }
  append(text, other_kind_text(owner, mechanism_of(owner)));
  if (owner.work.waits > 0 && owner.kind != OwnerKind::kCode)
    append(text, say(facts, "; the CPU waits for the GPU {} [time|times] in it",
                     {count(a_step(facts, owner.work.waits))}));
  append(text, spread_text(owner));
  append(text, more_of_rounds(facts, owner));
  if (const std::int64_t all = elements_for_each_used(facts, owner); all > 0)
    append(text,
           say("; reads one of {} numbers of each row", {count(static_cast<std::uint64_t>(all))}));
  const Sentence proportion = proportion_text(facts, owner), known = known_text(facts, owner);
  append(text, proportion);
  if (proportion.pattern.empty() && known.pattern.empty()) append(text, reading_text(facts, owner));
  append(text, known);
  if (step_count(facts) >= 3 && owner.most_in_a_step_ns * 5 > owner.total_ns * 3)
    append(text, say("; {} of it in one step", {ratio(owner.most_in_a_step_ns, owner.total_ns)}));
  return text;
}

}  // namespace lanescope::explain
