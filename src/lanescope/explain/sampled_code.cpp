#include "lanescope/explain/sampled_code.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "lanescope/analysis/python_flame.h"
#include "lanescope/explain/sampled_lines.h"

namespace lanescope::explain {
namespace {

// Adds up {"41": 12, "43": 3}; stops at what is no such text.
void add_lines(std::string_view json, std::map<std::int64_t, std::int64_t>* out) {
  while (true) {
    const std::size_t quote = json.find('"');
    if (quote == json.npos) return;
    json.remove_prefix(quote + 1);
    std::int64_t line = 0, samples = 0;
    const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), line);
    if (error != std::errc()) return;
    json.remove_prefix(static_cast<std::size_t>(end - json.data()));
    if (!json.starts_with("\": ")) return;
    json.remove_prefix(3);
    const auto [last, wrong] = std::from_chars(json.data(), json.data() + json.size(), samples);
    if (wrong != std::errc() || samples < 0 || samples > INT32_MAX) return;
    json.remove_prefix(static_cast<std::size_t>(last - json.data()));
    (*out)[line] += samples;
  }
}

}  // namespace

std::optional<std::int64_t> main_line(const Trace& trace, StringId function,
                                      std::span<const analysis::Window> stretches,
                                      Counted counted) {
  std::map<std::int64_t, std::int64_t> lines;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId slice{i};
    if (trace.slices().name[i] != function || trace.kind(slice) != CategoryKind::kPythonSample ||
        (counted == Counted::kInnermost &&
         trace.slice_args(slice).integer(ArgKey::kSelfSamples).value_or(0) <= 0))
      continue;
    const auto next = std::upper_bound(
        stretches.begin(), stretches.end(), trace.start_ns(slice),
        [](std::int64_t time, const analysis::Window& each) { return time < each.end_ns; });
    if (next == stretches.end() || next->start_ns >= trace.end_ns(slice)) continue;
    if (const auto json = trace.slice_args(slice).text(ArgKey::kSampleLines))
      add_lines(trace.text(*json), &lines);
  }
  const auto most = std::max_element(
      lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == lines.end()) return std::nullopt;
  return most->first;
}

std::optional<SampledCode> find_sampled_code(const Trace& trace, TrackId thread,
                                             std::span<const analysis::Window> stretches) {
  if (thread == kNone<TrackId> || trace.track(thread).tid.is_text || stretches.empty())
    return std::nullopt;
  analysis::FlameOptions options;
  options.source = analysis::FlameSource::kSamples;
  options.thread = trace.track(thread).tid.number;
  options.within.emplace();
  for (const analysis::Window& each : stretches)
    options.within->emplace_back(each.start_ns, each.end_ns);
  const auto flame = analysis::compute_python_flame(trace, options);
  if (!flame || flame->total < kLeastSamples) return std::nullopt;
  std::map<std::uint32_t, std::int64_t> self;  // by function
  for (const analysis::FlameNode& node : flame->nodes) self[raw(node.function)] += node.self;
  const auto most = std::max_element(
      self.begin(), self.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const StringId function{most->first};
  return SampledCode{std::string(trace.text(function)),
                     main_line(trace, function, stretches, Counted::kInnermost), most->second,
                     flame->total};
}

TrackId program_thread(const Facts& facts) {
  if (facts.main_device || !facts.cpu) return facts.main_thread;
  return facts.cpu->thread;
}

Sentence describe(const SampledCode& code) {
  const Value share = ratio(code.samples, code.of),
              samples = count(static_cast<std::uint64_t>(code.samples)),
              all = count(static_cast<std::uint64_t>(code.of));
  if (!code.line)
    return say("about {} ({} of {} samples) in {}", {share, samples, all, name(code.function)});
  return say(
      "about {} ({} of {} samples) in {}, mostly at line {}",
      {share, samples, all, name(code.function), count(static_cast<std::uint64_t>(*code.line))});
}

}  // namespace lanescope::explain
