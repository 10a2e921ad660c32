// The first use of a kernel brings its code to the GPU: module loads and long first launches.
#include "lanescope/explain/rules/code_loading.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

Finding tell_lazy_loading(const Facts& facts, const CodeLoading& measured) {
  const auto& [windows, calls, by_name, first_launches, lone_launches, median, total_ns, idle_ns] =
      measured;
  Finding finding;
  finding.kind = FindingKind::kOnce;
  const bool named = by_name.size() > (first_launches + lone_launches > 0 ? 1 : 0);
  finding.verdict =
      say(facts,
          "First uses of kernels cost {} during the recording, in {} [call|calls], {} of it with "
          "the GPU idle: {}.",
          {ns(total_ns), count(windows.size()), ns(idle_ns),
           text(named ? "their code is loaded when they first run"
                      : "probably their code was loaded, or a library set itself up")});
  finding.at_stake_ns = idle_ns;
  explain_long_step(facts, windows, {}, finding);
  if (first_launches > 0)
    finding.arithmetic.push_back(
        say(facts,
            "{} [kernel|kernels] whose first launch took more than 10 times the median "
            "launch ({}) and more than 5 times any later launch of the same kernel",
            {count(first_launches), ns(median)}));
  if (lone_launches > 0)
    finding.arithmetic.push_back(
        say("kernels launched once or twice, whose first launch took more than 1 ms and 100 times "
            "the median launch ({}) while the GPU had nothing to do: {}",
            {ns(median), count(lone_launches)}));
  add_named(facts, by_name, finding);
  finding.try_next = {"run a few steps before measuring: each shape and branch once"};
  if (by_name.begin()->first.starts_with("cu") || by_name.begin()->first.starts_with("Lazy"))
    finding.try_next.push_back(
        "set CUDA_MODULE_LOADING=EAGER to load all kernels at start, where a late first use hurts "
        "(a server's first request)");
  finding.confidence = named ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = windows.size();
  finding.sample_noun = "call";
  finding.brief = say("First uses of kernels took {}", {ns(total_ns)});
  finding.once =
      say("Once: first uses of kernels took {}. Run each shape and branch once before you measure.",
          {ns(total_ns)});
  return finding;
}

}  // namespace

extern constinit const Rule lazy_loading_rule = {
    .id = "lazy-loading",
    .question = "were kernels loaded during the recording?",
    .order = 830,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<find_code_loading, tell_lazy_loading>,
};

}  // namespace lanescope::explain::rules
