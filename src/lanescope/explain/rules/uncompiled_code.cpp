#include "lanescope/explain/rules/uncompiled_code.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/python_frames.h"

namespace lanescope::explain::rules {

namespace {

constexpr std::string_view kLookup = "TorchDynamo Cache Lookup";

// Is the event, or the call that launched it, inside of a function that torch.compile wraps, and in none of its regions?
bool runs_uncompiled(const Facts& facts, SliceId slice) {
  const Trace& trace = *facts.trace;
  if (const SliceId launch = facts.links.launch_of[raw(slice)]; launch != kNone<SliceId>)
    slice = launch;
  bool is_wrapped = false;
  for (std::uint32_t i = raw(slice); i-- > trace.track(slice).first_slice;) {
    const SliceId around{i};
    if (trace.end_ns(around) < trace.end_ns(slice)) continue;
    if (analysis::is_compiled_region(trace.name(around))) return false;
    if (trace.kind(around) == CategoryKind::kPythonFunction &&
        trace.name(around).find("torch/_dynamo/eval_frame.py(") != std::string_view::npos)
      is_wrapped = true;
  }
  return is_wrapped;
}

bool advises_compiling(std::string_view words) {
  return words.find("torch.compile") != std::string_view::npos;
}

UncompiledCode make_uncompiled_code(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  UncompiledCode found;
  std::map<std::uint32_t, SliceId> open;  // by thread: a lookup that no region has followed yet
  const auto count_open = [&](SliceId lookup) {
    ++found.lookups;
    found.lookups_ns += trace.dur_ns(lookup);
    if (found.longest == kNone<SliceId> || trace.dur_ns(lookup) > trace.dur_ns(found.longest))
      found.longest = lookup;
  };
  const auto is_looked_at = [](std::string_view name) {
    return name.ends_with("(dynamo_timed)") || name.starts_with(kLookup) ||
           analysis::is_compiled_region(name);
  };
  for (const SliceId id : slices_named(facts, is_looked_at)) {
    if (!is_front_end(trace.kind(id)) || !inside(windows, trace.start_ns(id))) continue;
    const std::string_view label = trace.name(id);
    // Compiling, not running.
    if (label.ends_with("(dynamo_timed)")) return {};
    const bool is_lookup = label.starts_with(kLookup);
    const std::uint32_t thread = raw(trace.slices().track[raw(id)]);
    const auto before = open.find(thread);
    if (before != open.end()) {
      if (is_lookup) count_open(before->second);
      open.erase(before);
    }
    if (is_lookup)
      open.emplace(thread, id);
    else
      ++found.compiled;
  }
  for (const auto& [thread, lookup] : open) count_open(lookup);
  return found.lookups < step_count(facts) ? UncompiledCode{} : found;
}

}  // namespace

const UncompiledCode& find_uncompiled_code(const Facts& facts) {
  return made_once<make_uncompiled_code>(facts);
}

bool cut_choice_of_compiling(Sentence& action) {
  for (const std::string_view choice : {", or torch.compile", ", or let torch.compile",
                                        "; or torch.compile", "; or let torch.compile"}) {
    const std::size_t at = action.pattern.find(choice);
    if (at == std::string::npos || advises_compiling(action.pattern.substr(0, at))) continue;
    action.pattern.resize(at);
    std::size_t values = 0;
    for (std::size_t i = action.pattern.find("{}"); i != std::string::npos;
         i = action.pattern.find("{}", i + 2))
      ++values;
    action.values.resize(std::min(values, action.values.size()));
    return true;
  }
  return false;
}

void leave_out_compiling(const Facts& facts, const UncompiledCode& code, Finding& finding) {
  const bool has_action = !finding.action.pattern.empty();
  const bool is_advised =
      has_action ? advises_compiling(finding.action.pattern)
                 : !finding.try_next.empty() && advises_compiling(finding.try_next.front());
  if (!is_advised) return;
  if (has_python_frames(*facts.trace)) {
    const auto first =
        std::find_if(finding.evidence.begin(), finding.evidence.end(),
                     [](const Evidence& evidence) { return evidence.slice != kNone<SliceId>; });
    if (first == finding.evidence.end() || !runs_uncompiled(facts, first->slice)) return;
  } else if (code.compiled > 0) {
    return;  // the trace does not show which of them this is
  }
  if (!has_action || !cut_choice_of_compiling(finding.action))
    finding.action = say(kUncompiledAction);
  std::erase_if(finding.try_next, advises_compiling);
  finding.try_next.insert(
      finding.try_next.begin(),
      "the code is under torch.compile, but runs uncompiled: see uncompiled-calls");
}

}  // namespace lanescope::explain::rules
