#include "lanescope/explain/owner_words.h"

#include <algorithm>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/explain/call_tree.h"
#include "lanescope/explain/code_of_slice.h"
#include "lanescope/explain/frames_around.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owner_mechanism.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/own_frames.h"
#include "lanescope/explain/rules/python_line.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain {
namespace {

constexpr std::size_t kNamesOfARound = 3;

// "a loop of 64", "3 loops of 64", "2 loops of 64 and 256", "40 loops of 350 to 420": loops of the same calls may differ in their
// rounds.
Sentence rounds_text(const Facts& facts, const Owner& owner) {
  const std::uint64_t loops = std::max<std::uint64_t>(1, owner.loops);
  const std::uint64_t runs = a_step(facts, loops), rounds = owner.rounds / loops;
  if (runs == 1) return say("a loop of {}", {count(rounds)});
  const std::uint64_t fewest = owner.fewest_rounds, most = owner.most_rounds;
  if (fewest == most) return say("{} loops of {}", {count(runs), count(rounds)});
  return say(runs == 2 && owner.rounds * 2 == loops * (fewest + most) ? "{} loops of {} and {}"
                                                                      : "{} loops of {} to {}",
             {count(runs), count(fewest), count(most)});
}

// A part's name within brackets: without what a kernel's name has in brackets of its own, and without autograd's namespace.
std::string part_name(std::string_view part) {
  constexpr std::string_view kNamespace = "torch::autograd::";
  if (part.starts_with(kNamespace)) part.remove_prefix(kNamespace.size());
  const std::size_t bracket = part.ends_with(')') ? part.find(" (") : part.npos;
  return std::string(part.substr(0, bracket));
}

Sentence loop_text(const Facts& facts, const Owner& owner) {
  Sentence text = rounds_text(facts, owner);
  if (owner.cell_size == 1 && !owner.cell.empty()) {
    append(text, say(" x {}", {name(owner.cell.front())}));
    return text;
  }
  append(text, say(facts, " rounds of {} [call|calls] (", {count(owner.cell_size)}));
  // What takes most of a round, not what happens to come first; never more names than calls. The first
  // with its share, if that is two fifths; of rounds of very many calls each that has a tenth.
  const std::size_t most = std::min<std::size_t>(kNamesOfARound, owner.cell_size);
  std::size_t named = 0;
  for (const OwnerPart& part : owner.parts) {
    if (named == most) break;
    const bool is_large = named == 0 && part.time_ns * 5 >= owner.total_ns * 2;
    if (is_large || (owner.cell_size >= kManyCallsOfARound && part.time_ns * 10 >= owner.total_ns))
      append(text, say(named == 0 ? "{} {}" : ", {} {}",
                       {name(part_name(part.name)), ratio(part.time_ns, owner.total_ns)}));
    else
      append(text, say(named == 0 ? "{}" : ", {}", {name(part_name(part.name))}));
    ++named;
  }
  for (std::size_t i = 0; named == 0 && i < owner.cell.size() && i < kNamesOfARound; ++i)
    append(text, say(i == 0 ? "{}" : ", {}", {name(part_name(owner.cell[i]))}));
  append(text, say(owner.cell_size > kNamesOfARound ? ", ...)" : ")"));
  if (owner.has_backward)
    append(text, say(owner.repeats_graph ? ", each with a backward pass over the same graph"
                                         : ", each with a backward pass"));
  return text;
}

Sentence code_text(const Owner& owner) {
  if (owner.around_kind == OwnerKind::kLine && !owner.around.empty())
    return say("Python of {}", {name(function_first(owner.around.back()))});
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
    append(text, say(i == 0 ? " (mostly {}" : ", {}", {name(part_name(owner.parts[i].name))}));
  if (!owner.parts.empty()) append(text, say(")"));
  return text;
}

// "cudaGraphLaunch (matrix products 54 %, elementwise 17 %)": kinds with a tenth of its work or more, at most three.
Sentence with_kinds(const Owner& owner, Sentence call) {
  constexpr std::size_t kMostKindsOfWork = 3;
  std::size_t named = 0;
  for (const KindOfTime& each : owner.work.kinds) {
    if (named == kMostKindsOfWork || each.time_ns * 10 < owner.work.gpu_ns) break;
    append(call, say(named == 0 ? " ({} {}" : ", {} {}",
                     {text(each.words), ratio(each.time_ns, owner.work.gpu_ns)}));
    ++named;
  }
  if (named > 0) append(call, say(")"));
  return call;
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
      return with_parts(owner, say("{}", {name(function_first(owner.name))}));
    case OwnerKind::kBackward:
      return with_parts(owner, say("the backward pass"));
    case OwnerKind::kLoop:
      return loop_text(facts, owner);
    case OwnerKind::kOperator:
    case OwnerKind::kCall: {
      const std::uint64_t calls = a_step(facts, owner.work.calls);
      return with_kinds(owner, calls <= 1 ? say("{}", {name(owner.name)})
                                          : say("{} x {}", {count(calls), name(owner.name)}));
    }
    case OwnerKind::kCode:
      return code_text(owner);
  }
  return {};
}

// The function around an owner, at the line of the longest of its calls where that is recorded. Else the line is that
// of its `def`: "in step (train.py:12)".
Sentence line_around(const Facts& facts, const Owner& owner) {
  const std::string& function = owner.around.back();
  const SliceId slice = cpu_side(facts, owner.example);
  if (slice != kNone<SliceId> && owner.kind != OwnerKind::kCode &&
      short_line(rules::python_function(facts, slice)) == function)
    if (const std::string line = short_line(rules::python_line(facts, slice)); line != function)
      return say(", at {}", {name(line)});
  return say(", in {}", {name(function_first(function))});
}

// The nn.Module around an owner: many modules may share a line, and only their names tell them apart.
std::string shared_line_module(const Facts& facts, const Owner& owner) {
  const SliceId slice = cpu_side(facts, owner.example);
  if (slice == kNone<SliceId>) return {};
  const std::string module = module_class_around(frames_around(facts), slice);
  return std::ranges::find(owner.around, module) == owner.around.end() ? std::string() : module;
}

Sentence place_text(const Facts& facts, const Owner& owner) {
  if (owner.around.empty()) return {};
  switch (owner.around_kind) {
    case OwnerKind::kRange:
      return say(analysis::is_compiled_region(owner.around.back()) ? ", in {}" : ", in range {}",
                 {name(owner.around.back())});
    case OwnerKind::kModule:
      return say(", in nn.Module {}", {name(owner.around.back())});
    case OwnerKind::kLine: {
      Sentence place = line_around(facts, owner);
      const std::string module = shared_line_module(facts, owner);
      if (!module.empty()) append(place, say(", nn.Module {}", {name(module)}));
      return place;
    }
    case OwnerKind::kBackward:
      return say(", backward pass");
    default:
      return {};
  }
}

}  // namespace

Sentence owner_name(const Facts& facts, const Owner& owner) {
  Sentence text = plain_text(facts, owner);
  if (owner.is_rest && owner.kind != OwnerKind::kStep)
    text.pattern = "other parts of " + text.pattern;
  return text;
}

Sentence owner_text(const Facts& facts, const Owner& owner) {
  Sentence text = owner_name(facts, owner);
  const bool says_line = owner.kind == OwnerKind::kLine ||
                         (owner.kind == OwnerKind::kCode && owner.around_kind == OwnerKind::kLine);
  if (!owner.around.empty() && !says_line) append(text, place_text(facts, owner));
  const SliceId slice = cpu_side(facts, owner.example);
  const bool is_one_place = owner.kind == OwnerKind::kOperator || owner.kind == OwnerKind::kLoop ||
                            owner.kind == OwnerKind::kCall;
  if (is_one_place && owner.around_kind != OwnerKind::kLine && slice != kNone<SliceId>) {
    const rules::PythonPlace place =
        rules::python_place(frames_around(facts), outward_from(facts, slice));
    const std::string line = short_line(place.frame);
    if (place.is_call)
      append(text, say(", at {}", {name(line)}));
    else if (!line.empty())
      append(text, say(", in {}", {name(function_first(line))}));
  }
  return text;
}

Sentence owner_sentence(const Facts& facts, const Owner& owner) {
  Sentence sentence = owner_text(facts, owner);
  if (!owner.function.empty())
    append(sentence, say(", {} of it in {}", {ratio(owner.function_ns, owner.total_ns),
                                              name(function_first(owner.function))}));
  append(sentence, say(": "));
  append(sentence, mechanism_text(facts, owner));
  return sentence;
}

Sentence owners_sentence(const Facts& facts, const std::vector<const Owner*>& owners) {
  std::uint64_t calls = 0;
  for (const Owner* owner : owners) calls += a_step(facts, owner->work.calls);
  Sentence text = say("{} x {}", {count(calls), name(owners.front()->name)});
  std::vector<std::string> lines, modules;
  for (const Owner* owner : owners) {
    const Sentence place = line_around(facts, *owner);
    const std::string& line = place.values.at(0).text;
    if (std::ranges::find(lines, line) == lines.end()) {
      append(text, lines.empty() ? place : say(", {}", {name(line)}));
      lines.push_back(line);
    }
    const std::string module = shared_line_module(facts, *owner);
    if (!module.empty() && std::ranges::find(modules, module) == modules.end())
      modules.push_back(module);
  }
  for (std::size_t i = 0; i < modules.size(); ++i)
    append(text, say(i == 0 ? ", nn.Module {}" : ", {}", {name(modules[i])}));
  append(text, say("; the first: "));
  append(text, mechanism_text(facts, *owners.front()));
  return text;
}

}  // namespace lanescope::explain
