#include "lanescope/report/ranks_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/ranks/roster.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using ranks::CausePart;
using ranks::JobVerdict;
using ranks::LateCause;
using ranks::VerdictKind;

double percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string ranks_subject(const JobVerdict& verdict) {
  return fmt::format("{} {}", verdict.ranks.size() == 1 ? "Rank" : "Ranks",
                     ranks::ranks_text(verdict.ranks));
}

std::string kernels_text(const JobVerdict& verdict) {
  if (!verdict.same_kernels) return "";
  return *verdict.same_kernels
             ? fmt::format(
                   ", with the same kernels and grids as the others: a slower {} (clock, "
                   "heat, another program) rather than more work",
                   verdict.device)
             : fmt::format(
                   ", with other kernels or grids than the others: more work (larger or "
                   "longer inputs) rather than a slower {}",
                   verdict.device);
}

// One class of the DataLoader's iterators is as good as another.
std::string late_part_text(const JobVerdict& verdict) {
  if (verdict.host_part.find("enumerate(DataLoader)#") != std::string::npos)
    return "the DataLoader";
  return shorten(one_line(verdict.host_part), 80);
}

std::string cause_text(const CausePart& part, const JobVerdict& verdict) {
  const std::string longer = rounded_time(part.longer_ns);
  const bool one = verdict.ranks.size() == 1;
  const std::string its = fmt::format("{} {}{}", one ? "Its" : "Their",
                                      verdict.on_cpu ? "CPU" : verdict.device, one ? "" : "s");
  switch (part.cause) {
    case LateCause::kCompute:
      return fmt::format("{} compute{} {} longer{}", its, one ? "s" : "", longer,
                         kernels_text(verdict));
    case LateCause::kHost:
    case LateCause::kInput:
      if (verdict.on_cpu)
        return fmt::format("{} {} {} longer outside of operators{}", its, one ? "is" : "are",
                           longer,
                           verdict.host_part.empty()
                               ? ""
                               : fmt::format(", {} of it in {}", rounded_time(verdict.host_part_ns),
                                             late_part_text(verdict)));
      if (verdict.host_work_ns > 0)
        return fmt::format(
            "{} {} {} longer for {}, which {} {} for the operators of a step, where the others "
            "need {}: a slower or shared core, or the profiler",
            its, one ? "waits" : "wait", longer, one ? "its CPU" : "their CPUs",
            one ? "needs" : "need", rounded_time(verdict.host_work_ns),
            rounded_time(verdict.others_work_ns));
      return fmt::format(
          "{} {} {} longer for {}{}", its, one ? "waits" : "wait", longer,
          one ? "its CPU" : "their CPUs",
          verdict.host_part.empty()
              ? ""
              : fmt::format(", which {} {} {} in {}", one ? "spends" : "spend",
                            rounded_time(verdict.host_part_ns),
                            verdict.host_part_is_of_step ? "more of a step" : "there",
                            late_part_text(verdict)));
    case LateCause::kCopies:
      return fmt::format("{} {} {} longer in copies that nothing hides", its, one ? "is" : "are",
                         longer);
    case LateCause::kOtherIdle:
      return fmt::format("{} {} idle {} longer, for a reason that the trace does not show", its,
                         one ? "is" : "are", longer);
  }
  return {};
}

// The largest part, and others of at least a quarter of the lateness.
void add_causes(const JobVerdict& verdict, std::vector<std::string>& sentences) {
  bool any = false;
  std::int64_t told_ns = 0;
  for (const CausePart& part : verdict.causes) {
    if (part.longer_ns <= 0 || (any && part.longer_ns * 4 < verdict.late_ns)) break;
    any = true;
    told_ns += part.longer_ns;
    sentences.push_back(cause_text(part, verdict) + ".");
  }
  if (told_ns * 2 < verdict.late_ns)
    sentences.push_back(fmt::format("The traces do not show what takes {}.",
                                    any ? "the rest of that time" : "that time"));
}

std::string since_text(const JobVerdict& verdict) {
  const std::string in = fmt::format("in {} of {} steps", verdict.late_steps, verdict.steps);
  if (verdict.since_start) return in + ", from the first recorded step on";
  if (verdict.since_step >= 0) return fmt::format("{}, since step {}", in, verdict.since_step);
  return in;
}

std::vector<std::string> straggler_sentences(const JobVerdict& verdict) {
  const bool one = verdict.ranks.size() == 1;
  std::vector<std::string> out = {fmt::format(
      "{} {} the others: {} {} later than the latest other rank in each step ({:.0f} % "
      "of a step of {}), {}.",
      ranks_subject(verdict), one ? "delays" : "delay", one ? "it is" : "they are up to",
      rounded_time(verdict.late_ns), percent(verdict.late_ns, verdict.step_ns),
      rounded_time(verdict.step_ns), since_text(verdict))};
  add_causes(verdict, out);
  return out;
}

std::vector<std::string> pipeline_sentences(const JobVerdict& verdict) {
  const ranks::PipelineWaits& pipeline = verdict.pipeline;
  std::vector<std::string> out = {
      fmt::format("The stages of the pipeline wait for each other: {} of a step of {} ({:.0f} %, "
                  "mean of ranks) passes in sends and receives whose other side is not there yet. "
                  "Of it, {} are warm-up (until a rank's first receive ends), {} cool-down (from "
                  "its last receive on), {} between.",
                  rounded_time(verdict.late_ns), rounded_time(verdict.step_ns),
                  percent(verdict.late_ns, verdict.step_ns), rounded_time(pipeline.waits.first_ns),
                  rounded_time(pipeline.waits.last_ns), rounded_time(pipeline.waits.between_ns))};
  if (!verdict.ranks.empty())
    out.push_back(
        fmt::format("Rank {} is the longest stage, {} longer than the mean: move layers to "
                    "other stages first.",
                    pipeline.longest_rank, rounded_time(pipeline.longer_ns)));
  if (pipeline.least_ratio > 0)
    out.push_back(fmt::format(
        "{} stages with {} micro-batches wait {:.0f} % of a step even if all are equally long{}.",
        pipeline.stages, pipeline.micro_batches, 100 * pipeline.least_ratio,
        verdict.ranks.empty() ? ": more micro-batches, or interleaved stages, shorten it" : ""));
  return out;
}

}  // namespace

std::vector<std::string> verdict_sentences(const JobVerdict& verdict) {
  switch (verdict.kind) {
    case VerdictKind::kUnknown:
      return {fmt::format("No verdict: {}.", one_line(verdict.reason))};
    case VerdictKind::kBalanced:
      return {
          fmt::format("No rank delays the others: in a step of {}, none is steadily later than the "
                      "others by {} or more (the clocks' error is {}).",
                      rounded_time(verdict.step_ns), rounded_time(verdict.threshold_ns),
                      rounded_time(verdict.error_ns))};
    case VerdictKind::kStraggler:
      return straggler_sentences(verdict);
    case VerdictKind::kRotating:
      return {fmt::format(
          "The work is uneven, and not always on the same rank: in {} of {} steps one rank needs "
          "longer than the others (ranks {}). Each step loses {} to it ({:.0f} % of {}). Usual "
          "causes: inputs of different length, or a CPU that is interrupted.",
          verdict.late_steps, verdict.steps, ranks::ranks_text(verdict.ranks),
          rounded_time(verdict.late_ns), percent(verdict.late_ns, verdict.step_ns),
          rounded_time(verdict.step_ns))};
    case VerdictKind::kPipeline:
      return pipeline_sentences(verdict);
    case VerdictKind::kUneven: {
      std::vector<std::string> out = {fmt::format(
          "The work is uneven: rank {} is latest in {} of {} steps, {} later than the mean of "
          "all ranks ({:.0f} % of a step of {}), and the others lie in between.",
          ranks::ranks_text(verdict.ranks), verdict.late_steps, verdict.steps,
          rounded_time(verdict.late_ns), percent(verdict.late_ns, verdict.step_ns),
          rounded_time(verdict.step_ns))};
      add_causes(verdict, out);
      return out;
    }
  }
  return {};
}

}  // namespace lanescope::report
