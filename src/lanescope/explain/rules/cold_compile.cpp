// torch.compile compiled inside the first recorded step: a cold start.
#include <algorithm>

#include "lanescope/explain/rules/compiling.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

struct ColdCompile {
  Compiling compiling;
  std::int64_t first_ns = 0;  // of the steps before the steady ones
};

Measurement<ColdCompile> measure_cold_compile(const Facts& facts) {
  const CompiledFacts compiled = compiled_facts_of(facts);
  if (compiled.code.compiles.empty()) return Quiet{};
  if (!facts.steps.marked || facts.steps.start_up_count == 0) return NotChecked{need::kRecordSteps};
  std::vector<Window> first;
  for (std::size_t i = 0; i < facts.steps.start_up_count; ++i)
    first.push_back({facts.steps.steps[i].cpu_start_ns, facts.steps.steps[i].cpu_end_ns});
  Compiling compiling = compiling_within(compiled.code, first);
  if (compiling.time_ns < 1'000'000) return Quiet{};
  std::int64_t first_ns = 0;
  for (const Window& window : first) first_ns += window.length_ns();
  return ColdCompile{.compiling = std::move(compiling), .first_ns = first_ns};
}

Finding tell_cold_compile(const Facts& facts, const ColdCompile& found) {
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict = say("torch.compile compiled inside the first recorded step: {} of its {} ({}).",
                        {ns(found.compiling.time_ns), ns(found.first_ns),
                         ratio(std::min(found.compiling.time_ns, found.first_ns), found.first_ns)});
  finding.at_stake_ns = found.compiling.time_ns;
  finding.explains = {{"slow-first-step", finding.at_stake_ns}};
  add_runs(facts, found.compiling, finding);
  finding.try_next = {
      "call the compiled function with each shape once before the recorded steps",
      "a second process finds Inductor's code in its cache (TORCHINDUCTOR_CACHE_DIR), but still "
      "traces and loads it"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = found.compiling.runs.size();
  finding.sample_noun = "compilation";
  finding.brief = say("torch.compile compiled during the first step: {} of {}",
                      {ns(found.compiling.time_ns), ns(found.first_ns)});
  return finding;
}

}  // namespace

extern constinit const Rule cold_compile_rule = {
    .id = "cold-compile",
    .question = "did torch.compile compile inside the first step?",
    .order = 820,
    .run = measure_and_tell<measure_cold_compile, tell_cold_compile>,
};

}  // namespace lanescope::explain::rules
