#include "lanescope/explain/owner_words.h"

#include <algorithm>
#include <utility>

#include "lanescope/explain/call_tree.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/owner_rounds.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_advice.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain {
namespace {

using simulate::PathKind;

// More CPU time a launch than this is not the launching.
constexpr std::int64_t kLongestLaunchingNs = 100'000;
constexpr std::size_t kNamesOfARound = 3;

std::uint64_t step_count(const Facts& facts) {
  return std::max<std::uint64_t>(1, facts.selection.steady.size());
}

// A count of all steady steps as one of a step, rounded, at least 1.
std::uint64_t a_step(const Facts& facts, std::uint64_t total) {
  const std::uint64_t steps = step_count(facts);
  return std::max<std::uint64_t>(1, (total + steps / 2) / steps);
}

std::int64_t mean(std::int64_t total_ns, std::uint64_t calls) {
  return calls == 0 ? 0 : total_ns / static_cast<std::int64_t>(calls);
}

bool is_most(std::int64_t part, std::int64_t whole) { return part * 2 > whole; }

SliceId cpu_slice(const Facts& facts, SliceId slice) {
  return slice != kNone<SliceId> && is_device_work(facts.trace->kind(slice))
             ? facts.links.launch_of[raw(slice)]
             : slice;
}

// "a loop of 64", "3 loops of 64", "40 loops of about 386": loops of the same calls may differ in
// their rounds.
Sentence rounds_text(const Facts& facts, const Owner& owner) {
  const std::uint64_t loops = std::max<std::uint64_t>(1, owner.loops);
  const std::uint64_t runs = a_step(facts, loops), rounds = owner.rounds / loops;
  if (runs == 1) return say("a loop of {}", {count(rounds)});
  return say(owner.rounds % loops == 0 ? "{} loops of {}" : "{} loops of about {}",
             {count(runs), count(rounds)});
}

Sentence loop_text(const Facts& facts, const Owner& owner) {
  Sentence text = rounds_text(facts, owner);
  if (owner.cell_size == 1 && !owner.cell.empty()) {
    append(text, say(" x {}", {name(owner.cell.front())}));
    return text;
  }
  append(text, say(facts, " rounds of {} [call|calls] (", {count(owner.cell_size)}));
  // What takes most of a round, not what happens to come first; never more names than calls.
  const std::size_t most = std::min<std::size_t>(kNamesOfARound, owner.cell_size);
  std::size_t named = 0;
  for (const OwnerPart& part : owner.parts) {
    if (named == most) break;
    append(text, say(named == 0 ? "{}" : ", {}", {name(part.name)}));
    ++named;
  }
  for (std::size_t i = 0; named == 0 && i < owner.cell.size() && i < kNamesOfARound; ++i)
    append(text, say(i == 0 ? "{}" : ", {}", {name(owner.cell[i])}));
  append(text, say(owner.cell_size > kNamesOfARound ? ", ...)" : ")"));
  return text;
}

Sentence code_text(const Owner& owner) {
  if (owner.around_kind == OwnerKind::kLine && !owner.around.empty())
    return say("Python of {}", {name(owner.around.back())});
  if (owner.name == "backward")
    return owner.next_name.empty()
               ? say("code after the backward pass")
               : say("code between the backward pass and {}", {name(owner.next_name)});
  const bool before = !owner.name.empty(), after = !owner.next_name.empty();
  if (before && owner.name == owner.next_name)
    return say("code between one {} and the next", {name(owner.name)});
  if (before && after)
    return say("code between {} and {}", {name(owner.name), name(owner.next_name)});
  if (before) return say("code after {}", {name(owner.name)});
  if (after) return say("code before {}", {name(owner.next_name)});
  return say("code outside of operators");
}

// "range forward (mostly aten::mm, aten::add)"
Sentence with_parts(const Owner& owner, Sentence text) {
  for (std::size_t i = 0; i < owner.parts.size() && i < 2; ++i)
    append(text, say(i == 0 ? " (mostly {}" : ", {}", {name(owner.parts[i].name)}));
  if (!owner.parts.empty()) append(text, say(")"));
  return text;
}

Sentence plain_text(const Facts& facts, const Owner& owner) {
  switch (owner.kind) {
    case OwnerKind::kStep:
      return with_parts(owner, say(owner.is_rest ? "all other parts" : "the whole step"));
    case OwnerKind::kRange:
      return is_loader(owner.name) ? say("{}", {name(owner.name)})
                                   : with_parts(owner, say("range {}", {name(owner.name)}));
    case OwnerKind::kModule:
      return with_parts(owner, say("nn.Module {}", {name(owner.name)}));
    case OwnerKind::kLine:
      return with_parts(owner, say("{}", {name(owner.name)}));
    case OwnerKind::kBackward:
      return with_parts(owner, say("the backward pass"));
    case OwnerKind::kLoop:
      return loop_text(facts, owner);
    case OwnerKind::kOperator:
    case OwnerKind::kCall: {
      const std::uint64_t calls = a_step(facts, owner.work.calls);
      return calls <= 1 ? say("{}", {name(owner.name)})
                        : say("{} x {}", {count(calls), name(owner.name)});
    }
    case OwnerKind::kCode:
      return code_text(owner);
  }
  return {};
}

Sentence place_text(const Owner& owner) {
  if (owner.around.empty()) return {};
  switch (owner.around_kind) {
    case OwnerKind::kRange:
      return say(", in range {}", {name(owner.around.back())});
    case OwnerKind::kModule:
      return say(", in nn.Module {}", {name(owner.around.back())});
    case OwnerKind::kLine:
      return say(", at {}", {name(owner.around.back())});
    case OwnerKind::kBackward:
      return say(", backward pass");
    default:
      return {};
  }
}

Sentence gpu_text(const Facts& facts, const Owner& owner) {
  const OwnerWork& work = owner.work;
  const std::uint64_t kernels = a_step(facts, work.launches - std::min(work.copies, work.launches));
  Sentence text = say("GPU work: ");
  if (work.top_kernel != kNone<SliceId> && is_most(work.top_kernel_ns, work.gpu_ns)) {
    if (kernels > 1) append(text, say("{} kernels, mostly ", {count(kernels)}));
    append(text, say(kernels > 1 ? "{} of {}" : "{}, {}",
                     {kernel(facts.trace->name(work.top_kernel)),
                      ns(mean(work.top_kernel_ns, work.top_kernel_count))}));
  } else {
    append(text, say(facts, "{} [kernel|kernels] of {} in the mean",
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
      work.copies == work.launches ? "launching: {} [copy|copies] of {}, {} of the CPU for each"
      : work.copies > 0 ? "launching: {} kernels and copies of {}, {} of the CPU for each"
                        : "launching: {} [kernel|kernels] of {}, {} of the CPU for [it|each]";
  return say(facts, pattern,
             {count(a_step(facts, work.launches)), ns(mean(work.gpu_ns, work.launches)),
              ns(mean(owner.cpu_ns(), work.launches))});
}

Sentence cpu_text(const Facts& facts, const Owner& owner) {
  const OwnerWork& work = owner.work;
  const std::int64_t each = mean(owner.total_ns, work.calls);
  if (!facts.main_device)
    return owner.kind == OwnerKind::kOperator && work.calls == step_count(facts)
               ? say("CPU time of one call")
               : say(facts, "CPU time of {} [call|calls], {} each",
                     {count(a_step(facts, work.calls)), ns(each)});
  if (work.launches == 0)
    return say(facts, "work on the CPU: {} [call|calls] of {}, no GPU work",
               {count(a_step(facts, work.calls)), ns(each)});
  return say(facts, "work on the CPU around {} [piece|pieces] of GPU work",
             {count(a_step(facts, work.launches))});
}

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

const char* short_mechanism(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kCpuWork:
      return "CPU time";
    case Mechanism::kGpuWork:
      return "kernels";
    case Mechanism::kCommunication:
      return "communication";
    case Mechanism::kCopying:
      return "copies";
    case Mechanism::kData:
      return "the DataLoader";
    default:
      return "not explained";
  }
}

// Equal kernels, or launch calls, of which some take much longer: 15 % of the owner's time or more.
Sentence spread_text(const Owner& owner) {
  const Mechanism mechanism = mechanism_of(owner);
  const bool of_kernels = mechanism == Mechanism::kGpuWork;
  if (!of_kernels && mechanism != Mechanism::kLaunching) return {};
  const Spread& spread = of_kernels ? owner.work.kernel_spread : owner.work.launch_spread;
  if (spread.excess_ns * 20 < owner.total_ns * 3) return {};
  return say(of_kernels ? "; unequal: half of these kernels take at most {}, the longest {}"
                        : "; unequal: half of the launch calls take at most {}, the longest {}",
             {ns(spread.median_ns), ns(spread.longest_ns)});
}

// The second kind of an owner's time, if it has a quarter of it.
Sentence other_kind_text(const Owner& owner, Mechanism first) {
  if (first == Mechanism::kData) return {};
  const bool is_cpu = first == Mechanism::kLaunching || first == Mechanism::kStartUp ||
                      first == Mechanism::kAllocating || first == Mechanism::kCode;
  if (is_cpu) first = Mechanism::kCpuWork;
  for (const Mechanism other : {Mechanism::kCpuWork, Mechanism::kGpuWork, Mechanism::kCopying,
                                Mechanism::kCommunication, Mechanism::kUnknown}) {
    const std::int64_t time = time_of(owner, other);
    if (other != first && time * 4 >= owner.total_ns)
      return say("; {} of it is {}", {ratio(time, owner.total_ns), text(short_mechanism(other))});
  }
  return {};
}

// "<built-in method save of X object at 0x7f>" as "built-in save", "a/b.py(3): f" as "a/b.py:3 f".
std::string short_frame(std::string_view frame) {
  constexpr std::string_view kMethod = "<built-in method ", kFunction = "<built-in function ";
  if (!frame.starts_with(kMethod) && !frame.starts_with(kFunction)) return short_line(frame);
  frame.remove_prefix(frame.starts_with(kMethod) ? kMethod.size() : kFunction.size());
  return "built-in " + std::string(frame.substr(0, frame.find_first_of(" >")));
}

Sentence code_mechanism_text(const Facts& facts, const Owner& owner) {
  if (owner.kind != OwnerKind::kCode && owner.kind != OwnerKind::kLine)
    return say(facts, "Python or other code around its {} [call|calls]",
               {count(a_step(facts, owner.work.calls))});
  // "Python of train.py:12 step", "code outside of operators": said already.
  const bool is_said =
      owner.around_kind == OwnerKind::kLine ||
      (owner.kind == OwnerKind::kCode && owner.name.empty() && owner.next_name.empty());
  Sentence text = !owner.frame.empty()
                      ? say("code, {} of it in {}",
                            {ratio(owner.frame_ns, owner.total_ns), name(short_frame(owner.frame))})
                  : is_said ? say("no events in it")
                            : say("Python or other code without events");
  if (!owner.other_event.empty())
    append(text, say("; for {} of it thread {} was in {}",
                     {ratio(owner.other_ns, owner.total_ns), name(owner.other_thread),
                      name(owner.other_event)}));
  else if (facts.main_device)
    append(text, say(", while the GPU waits"));
  return text;
}

bool is_one_operator(const Owner& owner) {
  return owner.kind == OwnerKind::kOperator ||
         (owner.kind == OwnerKind::kLoop && owner.cell_size == 1);
}

// What the table of operators says of this one, or of the one inside that it is made for.
Sentence known_text(const Facts& facts, const Owner& owner) {
  const rules::OperatorAdvice* row = known_operator(facts, owner);
  if (!row) return {};
  return is_one_operator(owner) ? say("; it {}", {text(row->meaning)})
                                : say("; {} {}", {name(row->op), text(row->meaning)});
}

// The row of an operator that holds a quarter of a loop or range, where no row asks for the inputs
// of the call: of a part there is only its name. Null: none.
const rules::OperatorAdvice* known_part(const Facts& facts, const Owner& owner) {
  for (const OwnerPart& part : owner.parts) {
    if (part.time_ns * 4 < owner.total_ns) break;
    for (const rules::OperatorAdvice& row : rules::operator_advice())
      if (row.op == part.name && !row.fits && row.kernel.empty() && row.unless_in.empty() &&
          a_step(facts, std::max<std::uint64_t>(1, owner.rounds)) >=
              static_cast<std::uint64_t>(row.least_calls))
        return &row;
  }
  return nullptr;
}

// Calls that take longer have work of their own: one call for all would not be shorter.
constexpr std::int64_t kLongestBatchedNs = 500'000;

bool has_category(const Trace& trace, CategoryKind kind) {
  return std::any_of(trace.categories().begin(), trace.categories().end(),
                     [&](const Category& each) { return each.kind == kind; });
}

// Was with_stack on? Its frames are events, or texts of the operators.
bool has_stacks(const Trace& trace) {
  if (has_category(trace, CategoryKind::kPythonFunction)) return true;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kCpuOp &&
        trace.slice_args(SliceId{i}).text(ArgKey::kCallStack))
      return true;
  return false;
}

// May the program call this loop's rounds at once? Nodes of the backward pass are not its calls.
bool could_be_batched(const Facts& facts, const Owner& owner) {
  if (owner.kind != OwnerKind::kLoop || owner.loops == 0 || owner.cell_size > 24 ||
      owner.has_large_products || !facts.steps.marked)
    return false;
  // Compiled code and other regions of their own do not join.
  if (!std::all_of(owner.cell.begin(), owner.cell.end(),
                   [](const std::string& each) { return each.starts_with("aten::"); }))
    return false;
  if (std::any_of(owner.cell.begin(), owner.cell.end(), [](const std::string& each) {
        return each.find("Backward") != std::string::npos;
      }))
    return false;
  const Mechanism mechanism = mechanism_of(owner);
  if (mechanism != Mechanism::kLaunching && mechanism != Mechanism::kCpuWork &&
      mechanism != Mechanism::kCode)
    return false;
  const std::uint64_t rounds = owner.rounds / owner.loops;
  // Few and long rounds are more likely the layers of a model.
  return rounds >= 8 && a_step(facts, owner.work.calls) >= rounds &&
         mean(owner.cpu_ns(), owner.work.calls) <= kLongestBatchedNs;
}

}  // namespace

const rules::OperatorAdvice* known_operator(const Facts& facts, const Owner& owner) {
  if (!is_one_operator(owner)) return known_part(facts, owner);
  const rules::OperatorAdvice* found = nullptr;
  // From the longest call outwards: the outermost operator with advice decides.
  SliceId slice = owner.example;
  if (slice != kNone<SliceId> && is_device_work(facts.trace->kind(slice)))
    slice = facts.links.launch_of[raw(slice)];
  for (; slice != kNone<SliceId>; slice = facts.nesting.parent[raw(slice)]) {
    const std::string_view name = facts.trace->name(slice);
    const bool is_owner = name == owner.name;
    if (!is_owner &&
        std::find(owner.inside.begin(), owner.inside.end(), name) == owner.inside.end())
      continue;
    const rules::OperatorAdvice* row = rules::advice_for_call(facts, slice);
    if (row && row->kernel.empty()) found = row;
    if (is_owner) break;
  }
  return found;
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
  if (work.launches > 0 && mean(owner.cpu_ns(), work.launches) <= kLongestLaunchingNs)
    return Mechanism::kLaunching;
  return is_most(owner.code_ns, all_cpu_ns(owner)) ? Mechanism::kCode : Mechanism::kCpuWork;
}

Sentence owner_text(const Facts& facts, const Owner& owner) {
  Sentence text = plain_text(facts, owner);
  if (owner.is_rest && owner.kind != OwnerKind::kStep)
    text.pattern = "other parts of " + text.pattern;
  const bool says_line = owner.kind == OwnerKind::kLine ||
                         (owner.kind == OwnerKind::kCode && owner.around_kind == OwnerKind::kLine);
  if (!owner.around.empty() && !says_line) append(text, place_text(owner));
  const SliceId slice = cpu_slice(facts, owner.example);
  const bool is_one_place = owner.kind == OwnerKind::kOperator || owner.kind == OwnerKind::kLoop ||
                            owner.kind == OwnerKind::kCall;
  if (is_one_place && owner.around_kind != OwnerKind::kLine && slice != kNone<SliceId>) {
    const std::string line = rules::python_line(facts, slice);
    if (!line.empty()) append(text, say(", at {}", {name(short_line(line))}));
  }
  return text;
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
  append(text, known_text(facts, owner));
  if (step_count(facts) >= 3 && owner.most_in_a_step_ns * 5 > owner.total_ns * 3)
    append(text, say("; {} of it in one step", {ratio(owner.most_in_a_step_ns, owner.total_ns)}));
  return text;
}

Sentence owner_sentence(const Facts& facts, const Owner& owner) {
  Sentence sentence = owner_text(facts, owner);
  append(sentence, say(": "));
  append(sentence, mechanism_text(facts, owner));
  return sentence;
}

std::string record_more(const Facts& facts, const Owner& owner) {
  // Only torch.profiler and lanescope record operators, and stacks with them.
  const bool may_have_stacks = has_category(*facts.trace, CategoryKind::kCpuOp);
  switch (mechanism_of(owner)) {
    case Mechanism::kCode:
      if (owner.kind == OwnerKind::kLine || owner.around_kind == OwnerKind::kLine) return {};
      if (has_stacks(*facts.trace)) return "mark parts of it with record_function";
      if (!may_have_stacks) return "mark parts of it with ranges (record_function, NVTX)";
      return "record with_stack=True to see which lines of Python these are, or mark parts of it "
             "with record_function";
    case Mechanism::kCpuWork:
    case Mechanism::kLaunching:
      if (has_stacks(*facts.trace) || !may_have_stacks) return {};
      return "record with_stack=True to see which lines make these calls";
    case Mechanism::kGpuWork:
      if (facts.main_device && !kernel_facts(facts).roofline.has_shapes)
        return "record_shapes=True tells how near these kernels come to what the GPU can do";
      return {};
    case Mechanism::kData:
      return "record the workers too, or time the dataset's __getitem__";
    default:
      return {};
  }
}

namespace {

// Of the table of operators, of the rounds of a loop, or one call for all rounds; empty: none is known.
Sentence remedy_text(const Facts& facts, const Owner& owner) {
  if (const rules::OperatorAdvice* row = known_operator(facts, owner)) return say(row->action);
  if (Sentence remedy = remedy_of_rounds(facts, owner); !remedy.pattern.empty()) return remedy;
  if (could_be_batched(facts, owner)) {
    const std::uint64_t calls = a_step(facts, owner.work.calls);
    return say(
        facts,
        "If no round needs the one before it: batch all rounds, {} [call|calls] instead of {}",
        {count(calls / (owner.rounds / owner.loops)), count(calls)});
  }
  return {};
}

}  // namespace

bool has_remedy(const Facts& facts, const Owner& owner) {
  return !remedy_text(facts, owner).pattern.empty();
}

Sentence advice_text(const Facts& facts, const Owner& owner) {
  if (Sentence remedy = remedy_text(facts, owner); !remedy.pattern.empty()) return remedy;
  std::string more = record_more(facts, owner);
  if (more.empty()) return {};
  return say("To learn more: {}", {text(std::move(more))});
}

}  // namespace lanescope::explain
