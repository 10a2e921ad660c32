#include "lanescope/explain/rules/evidence.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/code_of_slice.h"
#include "lanescope/explain/frames_around.h"
#include "lanescope/explain/rules/own_frames.h"
#include "lanescope/explain/rules/python_line.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/explain/user_code.h"
#include "lanescope/names/library_frames.h"

namespace lanescope::explain::rules {

namespace {

// The first line of a recorded stack, innermost first, that is the program's own.
std::string line_of_stack(std::string_view stack) {
  while (!stack.empty()) {
    const std::size_t end = stack.find_first_of(";\n");
    std::string_view line = stack.substr(0, end);
    while (line.ends_with('\r')) line.remove_suffix(1);  // Ascend's lines end so
    if (!line.empty() && !names::is_of_library(line) && !is_module_frame(line))
      return std::string(line);
    if (end == std::string_view::npos) break;
    stack.remove_prefix(end + 1);
  }
  return {};
}

// "train.py:31", the line that called a frame; torch 2.14 and newer write it. Empty: not recorded.
std::string_view caller_of(const Trace& trace, SliceId frame) {
  if (frame == kNone<SliceId>) return {};
  const ArgsView args = trace.slice_args(frame);
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ArgField& field = args.field(i);
    if (field.type == ArgType::kString && trace.text(field.key) == "CallFrom")
      return trace.text(StringId{static_cast<std::uint32_t>(args.bits(field))});
  }
  return {};
}

// The number in a frame's name is the line where its function begins, or that at the start of the
// recording. With the line of the call, "train.py(9): main" and "train.py:31" become "train.py(31):
// main".
std::string at_call(std::string_view frame, std::string_view caller) {
  const std::size_t open = frame.find(".py("), close = frame.find("): ", open);
  const std::size_t colon = caller.rfind(':');
  if (close == frame.npos || colon == caller.npos ||
      caller.substr(0, colon) != frame.substr(0, open + 3))
    return std::string(frame);
  return fmt::format("{}({}{}", frame.substr(0, open + 3), caller.substr(colon + 1),
                     frame.substr(close));
}

struct OwnFrame {
  SliceId frame = kNone<SliceId>;   // the innermost Python frame of the program around a slice
  SliceId called = kNone<SliceId>;  // what it called: the next frame inside
};
OwnFrame own_frame(const FramesAround& frames, SliceId slice) {
  const Trace& trace = frames.trace();
  OwnFrame own;
  if (trace.kind(slice) == CategoryKind::kPythonFunction) own.called = slice;
  frames.visit(slice, [&](SliceId frame) {
    if (trace.kind(frame) != CategoryKind::kPythonFunction) return false;
    if (trace.name(frame).find(".py(") != std::string_view::npos &&
        !names::is_of_library(trace.name(frame))) {
      own.frame = frame;
      return true;
    }
    own.called = frame;
    return false;
  });
  return own;
}

}  // namespace

PythonPlace python_place(const FramesAround& frames, std::span<const SliceId> outward) {
  const Trace& trace = frames.trace();
  for (const SliceId up : outward)
    if (const auto stack = trace.slice_args(up).text(ArgKey::kCallStack)) {
      std::string line = line_of_stack(trace.text(*stack));
      if (!line.empty()) return {std::move(line), true};
    }
  const auto [frame, called] = own_frame(frames, outward.front());
  if (frame == kNone<SliceId>) return {};
  std::string line = at_call(trace.name(frame), caller_of(trace, called));
  const bool is_call = line != trace.name(frame);
  return {std::move(line), is_call};
}

std::string python_line(const Facts& facts, SliceId slice) {
  return python_place(frames_around(facts), outward_from(facts, slice)).frame;
}

std::string python_function(const Facts& facts, SliceId slice) {
  const SliceId frame = own_frame(frames_around(facts), slice).frame;
  return frame == kNone<SliceId> ? std::string() : std::string(facts.trace->name(frame));
}

void add_line(const Facts& facts, SliceId slice, Sentence& sentence) {
  if (slice == kNone<SliceId>) return;
  const std::string line = python_line(facts, slice);
  if (line.empty()) return;
  sentence.pattern += ", called at {}";
  sentence.values.push_back(name(line));
}

Evidence called_at(const Facts& facts, SliceId slice, Sentence what) {
  add_line(facts, slice, what);
  return {slice, std::move(what)};
}

void add_named(const Facts& facts, const std::map<std::string, Named>& by_name, Finding& finding) {
  std::vector<std::pair<std::string, Named>> ranked(by_name.begin(), by_name.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.time_ns > b.second.time_ns; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    finding.evidence.push_back(called_at(
        facts, ranked[i].second.longest,
        say("{} x{}: {}",
            {name(ranked[i].first), count(ranked[i].second.count), ns(ranked[i].second.time_ns)})));
  }
}

void add_host_evidence(const Facts& facts, const std::vector<HostShare>& shares, Finding& finding) {
  std::int64_t all = 0;
  for (const HostShare& share : shares) all += share.time_ns;
  for (std::size_t i = 0; i < shares.size() && i < 3; ++i) {
    if (wide(shares[i].time_ns) * 20 < all) break;  // below 5 % it explains nothing
    Sentence text = describe(shares[i]);
    text.pattern = "CPU meanwhile: " + text.pattern;
    append(text, say(facts, ": {} [per step], {}",
                     {ns(facts.per_step(shares[i].time_ns)), ratio(shares[i].time_ns, all)}));
    add_line(facts, shares[i].longest, text);
    finding.evidence.push_back({shares[i].longest, std::move(text)});
  }
}

void add_more_than_usual(const Facts& facts, std::size_t step, std::int64_t excess_ns,
                         Finding& finding) {
  const auto& steps = facts.steps.steps;
  const TrackId thread = steps[step].slice == kNone<SliceId>
                             ? facts.main_thread
                             : facts.trace->slices().track[raw(steps[step].slice)];
  const auto shares_of = [&](const std::vector<std::size_t>& indices) {
    std::vector<HostStretch> stretches;
    for (const std::size_t i : indices)
      stretches.push_back({thread, steps[i].cpu_start_ns, steps[i].cpu_end_ns, kNone<SliceId>});
    return host_shares(facts, stretches);
  };
  std::vector<std::size_t> others;
  for (const std::size_t i : facts.selection.steady)
    if (i != step) others.push_back(i);
  for (std::size_t i = 0; others.empty() && i < steps.size(); ++i)
    if (i != step) others.push_back(i);
  if (others.empty()) return;
  std::map<std::string, std::int64_t> usual;
  for (const HostShare& share : shares_of(others))
    usual[share.name] = share.time_ns / static_cast<std::int64_t>(others.size());
  std::vector<HostShare> more = shares_of({step});
  for (HostShare& share : more)
    if (const auto entry = usual.find(share.name); entry != usual.end())
      share.time_ns -= entry->second;
  sort_rows(more.begin(), more.end(),
            [](const HostShare& a, const HostShare& b) { return a.time_ns > b.time_ns; });
  for (std::size_t i = 0; i < more.size() && i < 3; ++i) {
    if (wide(more[i].time_ns) * 20 < excess_ns) break;
    Sentence text = describe(more[i]);
    text.pattern = "{} more than usual: " + text.pattern;
    text.values.insert(text.values.begin(), ns(more[i].time_ns));
    finding.evidence.push_back({more[i].longest, std::move(text)});
  }
}

}  // namespace lanescope::explain::rules
