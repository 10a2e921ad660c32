// A recording without GPU work: what the thread that runs the steps does in them.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/analysis/compiled_regions.h"
#include "lanescope/explain/python_frames.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sampled_code.h"

namespace lanescope::explain::rules {

using analysis::HostPart;

namespace {

struct PartWords {
  const char *in_sentence, *in_sum, *advice;
};
PartWords words_of(HostPart part) {
  switch (part) {
    case HostPart::kCompile:
      return {"torch.compile, compiling", "compiling",
              "run the steps that compile before the recording (warm-up); if they come back, "
              "lanescope explain --question recompiles"};
    case HostPart::kLoader:
      return {"waiting for input data", "input data",
              "load in worker processes: DataLoader(num_workers=...); if it has workers, use more "
              "of them or make decoding cheaper"};
    case HostPart::kBackward:
      return {"the backward pass", "backward",
              "use torch.compile: it fuses operators on the CPU too, forward and backward; "
              "torch.get_num_threads() shows how many cores they use"};
    case HostPart::kOptimizer:
      return {
          "the optimizer", "optimizer",
          "pass fused=True to the optimizer, if it has it (Adam, AdamW, SGD, Adagrad): it updates "
          "all parameters in a few calls"};
    case HostPart::kOperator:
      return {"operators other than backward and optimizer", "other operators",
              "use torch.compile: it fuses operators on the CPU too; torch.get_num_threads() shows "
              "how many cores they use"};
    case HostPart::kOutside:
      break;
  }
  return {"outside of operators: Python, waiting, other threads, or what was not recorded",
          "outside of operators", nullptr};  // advise_python_frames()
}

std::vector<std::string> advice_for(const Facts& facts, HostPart most,
                                    const std::vector<HostShare>& shares, bool is_sampled) {
  if (used_gpu(facts))
    return {
        "record with ProfilerActivity.CUDA: the program used a GPU that this trace does not show, "
        "so operators may only have launched GPU work or waited for it"};
  if (facts.vendor)
    return {"operators may only have started work of the " + facts.vendor->name +
            ", or waited for it: look at what the device did first"};
  const bool compiled = std::any_of(shares.begin(), shares.end(), [](const HostShare& share) {
    return share.name.find(analysis::kCompiledRegion) != std::string::npos;
  });
  std::vector<std::string> advice;
  if (is_sampled && most == HostPart::kOutside)
    advice.emplace_back(
        "lanescope flame TRACE shows all Python stacks, --step N those of one step");
  else if (!compiled || (most != HostPart::kOperator && most != HostPart::kBackward))
    advice.push_back(most == HostPart::kOutside
                         ? advise_python_frames(*facts.trace,
                                                "the Python frames show what runs between the "
                                                "operators: lanescope tree --stacks",
                                                "the Python frames show what runs between the "
                                                "operators")
                         : words_of(most).advice);
  advice.emplace_back(
      "if a GPU was meant to do this: is the model on it (next(model.parameters()).device), and is "
      "it recorded (lanescope doctor)?");
  return advice;
}

constexpr Need kCpuEvents = {
    [](const Facts& facts) { return facts.cpu && facts.cpu_wall.wall_ns > 0; },
    "operators or annotations of the CPU (ProfilerActivity.CPU)"};

const char* most_words(const analysis::HostWall& wall, HostPart most) {
  const bool is_all_operators = wall.of(HostPart::kBackward) + wall.of(HostPart::kOptimizer) == 0;
  return most == HostPart::kOperator && is_all_operators ? "operators" : words_of(most).in_sentence;
}

struct CpuParts {
  HostPart most;
  std::vector<HostShare> shares;
};

std::optional<CpuParts> measure_cpu_time(const Facts& facts) {
  const analysis::HostWall& wall = facts.cpu_wall;
  const auto most = static_cast<HostPart>(
      std::max_element(std::begin(wall.part_ns), std::end(wall.part_ns)) - wall.part_ns);
  std::vector<HostStretch> stretches;
  for (const analysis::Window& window : facts.steady_windows)
    stretches.push_back({facts.cpu->thread, window.start_ns, window.end_ns, kNone<SliceId>});
  return CpuParts{.most = most, .shares = host_shares(facts, stretches)};
}

struct CallsOfSteps {
  std::uint64_t calls[2] = {0, 0};
  std::int64_t time_ns[2] = {0, 0};
};

// "; most of the difference is in aten::conv3d, 5 and 70 calls": the outermost operator that makes the longer of two steps long.
Sentence what_differs(const Facts& facts, std::int64_t difference_ns) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(facts.cpu->thread);
  std::map<std::uint32_t, CallsOfSteps> by_name;  // by raw StringId
  std::int64_t end_ns = INT64_MIN;
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || trace.start_ns(id) < end_ns) continue;
    end_ns = trace.end_ns(id);
    for (std::size_t step = 0; step < 2; ++step) {
      const analysis::Window window = facts.step_window(facts.selection.steady[step]);
      if (trace.start_ns(id) < window.start_ns || trace.start_ns(id) >= window.end_ns) continue;
      CallsOfSteps& entry = by_name[raw(trace.slices().name[i])];
      ++entry.calls[step];
      entry.time_ns[step] += trace.dur_ns(id);
    }
  }
  for (const auto& [id, entry] : by_name)
    if (entry.calls[0] != entry.calls[1] &&
        std::abs(entry.time_ns[1] - entry.time_ns[0]) * 2 > difference_ns)
      return say("; most of the difference is in {}, {} and {} calls",
                 {name(trace.text(StringId{id})), count(entry.calls[0]), count(entry.calls[1])});
  return {};
}

// A mean that few steps make says little about a usual step.
Sentence unlike_steps(const Facts& facts) {
  constexpr std::size_t kFewest = 5;
  std::vector<std::int64_t> lengths;
  for (const std::size_t step : facts.selection.steady)
    lengths.push_back(facts.step_window(step).length_ns());
  if (lengths.size() == 2 &&
      std::max(lengths[0], lengths[1]) > 2 * std::min(lengths[0], lengths[1])) {
    Sentence both = say(" The two steps took {} and {}", {ns(lengths[0]), ns(lengths[1])});
    append(both, what_differs(facts, std::abs(lengths[1] - lengths[0])));
    append(both, say("."));
    return both;
  }
  if (lengths.size() < kFewest) return {};
  const std::int64_t median_ns = analysis::median_of_steps(lengths);
  if (facts.per_step(facts.cpu_wall.wall_ns) < 2 * median_ns) return {};
  return say(" That is a mean: half of the steps take {} or less.", {ns(median_ns)});
}

Finding tell_cpu_time(const Facts& facts, const CpuParts& found) {
  const analysis::HostWall& wall = facts.cpu_wall;
  Finding finding;
  finding.kind = FindingKind::kWhere;
  finding.verdict = say(facts,
                        wall.of(found.most) * 1000 >= wall.wall_ns * 995
                            ? "On the CPU [a step takes] {}; nearly all of it, {}, is {}."
                        : wall.of(found.most) * 2 > wall.wall_ns
                            ? "On the CPU [a step takes] {}; most of it, {}, is {}."
                            : "On the CPU [a step takes] {}; the largest part, {}, is {}.",
                        {linked(ns(facts.per_step(wall.wall_ns)), shows::kStep),
                         linked(ratio(wall.of(found.most), wall.wall_ns), "cpu-time"),
                         text(most_words(wall, found.most))});
  const auto top =
      std::find_if(found.shares.begin(), found.shares.end(), [](const HostShare& share) {
        // Rows of torch.compile are of this kind, too; operators have a namespace.
        return share.kind == CategoryKind::kCpuOp && share.name.find("::") != std::string::npos;
      });
  constexpr std::int64_t kTells = 50;  // below 2 % an operator explains nothing
  if (top != found.shares.end() && top->time_ns * kTells >= wall.wall_ns) {
    finding.verdict.pattern += " The operator with the most self time is {}, {}.";
    finding.verdict.values.push_back(name(top->name));
    finding.verdict.values.push_back(linked(ratio(top->time_ns, wall.wall_ns), top->longest));
  }
  append(finding.verdict, unlike_steps(facts));
  std::vector<Term> terms;
  for (std::size_t i = 0; i < analysis::kHostPartCount; ++i)
    terms.push_back({words_of(static_cast<HostPart>(i)).in_sum, facts.per_step(wall.part_ns[i])});
  Sentence sum = sum_of(terms);
  append(sum, say(facts, " = {} [per step]", {ns(facts.per_step(wall.wall_ns))}));
  finding.arithmetic.push_back(std::move(sum));
  for (std::size_t i = 0; i < found.shares.size() && i < 5; ++i) {
    if (found.shares[i].time_ns * kTells < wall.wall_ns) break;
    Sentence line = describe(found.shares[i]);
    append(line, say(facts, ": {} [per step], {}",
                     {ns(facts.per_step(found.shares[i].time_ns)),
                      ratio(found.shares[i].time_ns, wall.wall_ns)}));
    finding.evidence.push_back({found.shares[i].longest, std::move(line)});
  }
  const auto code = find_sampled_code(*facts.trace, facts.cpu->thread, facts.steady_windows);
  if (code) {
    Sentence line = say("samples of this thread's Python stack in these steps: ");
    append(line, describe(*code));
    finding.arithmetic.push_back(std::move(line));
  }
  finding.try_next = advice_for(facts, found.most, found.shares, code.has_value());
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  return finding;
}

}  // namespace

extern constinit const Rule cpu_time_rule = {
    .id = "cpu-time",
    .question = "what does the CPU do in a step when there is no GPU work?",
    .order = 50,
    .only_if = has_no_gpu_work,
    .then_needs = {kCpuEvents},
    .run = measure_and_tell<measure_cpu_time, tell_cpu_time>,
    .is_cpu_headline = true,
    .survives_cut = false,
};

}  // namespace lanescope::explain::rules
