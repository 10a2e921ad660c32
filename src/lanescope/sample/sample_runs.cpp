#include "lanescope/sample/sample_runs.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <string_view>

#include "lanescope/codec/op_details.h"
#include "lanescope/record/thread_writer.h"

namespace lanescope::sample {
namespace {

constexpr std::int64_t kLongestRunNs = 100'000'000;  // what a killed process may lose
constexpr std::size_t kMostKnownStacks = 1 << 16;

// The CPU time of a thread of this process, in nanoseconds; -1: not known.
std::int64_t cpu_time_of(std::uint64_t thread) {
  constexpr clockid_t kPerThread = 4, kScheduled = 2;  // as the kernel names that clock
  const auto clock =
      static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | kPerThread | kScheduled);
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return -1;
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::uint8_t lock_flags(const SampledStack& stack, const std::optional<GilState>& lock) {
  if (!lock || lock->holder == 0 || lock->holder != stack.state) return 0;
  unsigned flags = spool::kHeldLock;
  if (lock->waiting.value_or(0) > 0) flags |= spool::kOthersWaited;
  if (lock->is_collecting) flags |= spool::kCollected;
  return static_cast<std::uint8_t>(flags);
}

std::uint32_t add_node(std::uint32_t function, int line, std::uint32_t caller) {
  char buffer[codec::kMaxSampleNodeBytes];
  codec::OpDetailsWriter out(buffer, sizeof buffer);
  out.sample_node(function, static_cast<std::uint32_t>(line), caller);
  const std::string_view bytes = out.bytes();
  return record::intern_text(bytes.data(), bytes.size());
}

}  // namespace

std::uint64_t SampleRuns::add(const std::vector<SampledStack>& stacks,
                              const std::optional<GilState>& lock, const SampleTime& time) {
  if (generation_ != reader_.generation()) {
    generation_ = reader_.generation();
    functions_.clear();
    nodes_.clear();
  }
  ++moments_;
  std::uint64_t taken = 0;
  for (const SampledStack& stack : stacks) {
    if (stack.frames.empty() || stack.thread == 0) continue;
    add(stack, lock_flags(stack, lock), time);
    ++taken;
  }
  for (auto run = runs_.begin(); run != runs_.end();) {
    if (run->second.seen == moments_) {
      ++run;
      continue;
    }
    write(run->first, run->second);
    run = runs_.erase(run);
  }
  return taken;
}

void SampleRuns::add(const SampledStack& stack, std::uint8_t flags, const SampleTime& time) {
  const std::uint32_t node = node_of(stack);
  Run& run = runs_[stack.thread];
  const std::int64_t cpu_ns = process_ == 0 ? cpu_time_of(stack.thread) : -1;
  if (cpu_ns >= 0 && run.cpu_ns >= 0) {
    flags |= spool::kCpuTimeKnown;
    if ((cpu_ns - run.cpu_ns) * 2 >= time.ns - run.last.ns) flags |= spool::kOnCpu;
  }
  if (run.samples != 0 &&
      (run.node != node || run.flags != flags || time.ns - run.first.ns > kLongestRunNs)) {
    write(stack.thread, run);
    run.samples = 0;
  }
  if (run.samples++ == 0) run.first = time;
  run.last = time;
  run.node = node;
  run.flags = flags;
  run.cpu_ns = cpu_ns;
  run.seen = moments_;
}

void SampleRuns::write(std::uint64_t thread, const Run& run) const {
  if (run.samples == 0) return;
  record::record_sample(
      {.begin_tsc = run.first.ticks,
       .end_tsc = run.last.ticks,
       .node = run.node,
       .flags = run.flags,
       .thread = thread,
       .samples = run.samples,
       .period_ns = static_cast<std::uint32_t>(std::min<std::int64_t>(period_.count(), UINT32_MAX)),
       .process = process_});
}

void SampleRuns::set_period(std::chrono::nanoseconds period) {
  if (period == period_) return;
  write_all();
  period_ = period;
}

void SampleRuns::write_all() {
  for (auto& [thread, run] : runs_) {
    write(thread, run);
    run.samples = 0;
  }
}

std::uint32_t SampleRuns::function_text(std::uint32_t number) {
  const auto [known, is_new] = functions_.try_emplace(number);
  if (!is_new) return known->second;
  const SampledFunction& function = reader_.function(number);
  std::string_view file = function.file;
  for (const std::string& prefix : prefixes_) {
    if (!file.starts_with(prefix)) continue;
    file.remove_prefix(prefix.size());
    break;
  }
  const std::string text = fmt::format("{}({}): {}", file, function.first_line, function.name);
  return known->second = record::intern_text(text.data(), text.size());
}

// The node of a stack, made from the outermost frame inwards; callers share theirs.
std::uint32_t SampleRuns::node_of(const SampledStack& stack) {
  std::uint64_t hash = stack.is_cut ? 1 : 0;
  for (const SampledFrame& frame : stack.frames)
    hash = record::detail::mix(hash ^ frame.function, static_cast<std::uint64_t>(frame.line));
  if (const auto known = nodes_.find(hash); known != nodes_.end()) return known->second;
  if (nodes_.size() >= kMostKnownStacks) nodes_.clear();
  std::uint32_t node = 0;
  if (stack.is_cut) {
    constexpr std::string_view kDeeper = "(deeper frames left out)";
    node = add_node(record::intern_text(kDeeper.data(), kDeeper.size()), 0, node);
  }
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame)
    node = add_node(function_text(frame->function), frame->line, node);
  return nodes_[hash] = node;
}

}  // namespace lanescope::sample
