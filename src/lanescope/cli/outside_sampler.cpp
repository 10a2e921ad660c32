#include "lanescope/cli/outside_sampler.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace lanescope::cli {
namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC

// Between the kernel's look at a running thread and that at its Python stack.
constexpr std::int64_t kNearNs = 100'000;
constexpr const char* kUnknownCallers = "(native callers not known)";

std::int64_t ns_of(Clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

}  // namespace

Sampled OutsideSampler::run(pid_t pid, std::int64_t seconds,
                            const volatile std::sig_atomic_t& stop) {
  const auto began = Clock::now();
  auto next = began;
  while (stop == 0 && !out_.is_full && Clock::now() - began < std::chrono::seconds(seconds)) {
    take(std::chrono::nanoseconds(Clock::now() - began).count());
    if (::kill(pid, 0) != 0 && errno == ESRCH) break;
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    next += period_ / 2 + period_ * static_cast<std::int64_t>(random_ >> 44) / (1 << 20);
    next = std::max(next, Clock::now());
    std::this_thread::sleep_until(next);
    if (native_) native_->wait_for_running(period_.count() / 2);
  }
  out_.due = static_cast<std::uint64_t>((Clock::now() - began) / period_);
  if (reader_) {
    out_.torn = reader_->counts().torn;
    out_.lost = reader_->counts().lost_samples + reader_->counts().lost_threads;
  }
  return std::move(out_);
}

void OutsideSampler::take(std::int64_t now_ns) {
  static const std::vector<sample::SampledStack> kNoPython;
  static const std::vector<sample_native::NativeStack> kNoNative;
  ++out_.times;
  if (native_) native_->before_python();
  const std::int64_t read_at_ns = ns_of(Clock::now());
  const auto& stacks = reader_ ? reader_->sample(0, lock_->pieces()) : kNoPython;
  if (reader_) out_.lock.add(lock_->state(), stacks, *reader_);
  std::map<std::uint64_t, const sample_native::NativeStack*> native;
  for (const auto& one : native_ ? native_->after_python() : kNoNative)
    native.emplace(one.thread, &one);
  for (const sample::SampledStack& stack : stacks) {
    if (stack.frames.empty()) continue;
    SampledFrames frames = python_frames(stack);
    if (const auto found = native.find(stack.thread); found != native.end()) {
      if (fits(*found->second, stack, read_at_ns)) {
        add_native(*found->second, true, &frames);
        ++out_.with_native;
      }
      out_.threads[stack.thread].name = found->second->name;
      native.erase(found);
    }
    add(stack.thread, frames, now_ns);
    if (native_) before_[stack.thread] = {stack.frames, read_at_ns};
  }
  for (const auto& [thread, one] : native) {
    if (one->frames.empty()) continue;  // it ran, and nobody saw where
    SampledFrames frames;
    add_native(*one, false, &frames);
    ++out_.with_native;
    out_.threads[thread].name = one->name;
    add(thread, frames, now_ns);
  }
}

void OutsideSampler::add(std::uint64_t thread, const SampledFrames& frames, std::int64_t now_ns) {
  const std::size_t number =
      out_.number_of_stack.try_emplace(frames, out_.number_of_stack.size()).first->second;
  ++out_.samples;
  std::vector<SampledRun>& runs = out_.threads[thread].runs;
  if (!runs.empty() && runs.back().stack == number &&
      now_ns - runs.back().last_ns <= 4 * period_.count()) {
    runs.back().last_ns = now_ns;
    ++runs.back().samples;
    return;
  }
  if (++out_.runs > kMostRuns) {
    out_.is_full = true;
    return;
  }
  runs.push_back({now_ns, now_ns, 1, number});
}

SampledFrames OutsideSampler::python_frames(const sample::SampledStack& stack) const {
  SampledFrames frames;
  if (stack.is_cut) frames.emplace_back("(deeper frames left out)", 0);
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    const sample::SampledFunction& function = reader_->function(frame->function);
    frames.emplace_back(
        fmt::format("{}({}): {}", function.file, function.first_line, function.name), frame->line);
  }
  return frames;
}

// A native stack that waits was read before and after the Python stack. One that runs was seen by the timer since the sample
// before. It fits if the Python stack is the same in both samples, and if one of them is so near that the thread cannot have
// been elsewhere and come back (a loop of short calls).
bool OutsideSampler::fits(const sample_native::NativeStack& native,
                          const sample::SampledStack& python, std::int64_t read_at_ns) const {
  if (native.frames.empty()) return false;
  if (native.waits) return true;
  const auto before = before_.find(python.thread);
  if (before == before_.end() || before->second.frames != python.frames) return false;
  const std::int64_t after_before_ns = native.time_ns - before->second.time_ns;
  return after_before_ns >= 0 &&
         (after_before_ns <= kNearNs || std::abs(read_at_ns - native.time_ns) <= kNearNs);
}

// Below Python code: what the innermost Python function called, without the interpreter's own functions.
void OutsideSampler::add_native(const sample_native::NativeStack& native, bool below_python,
                                SampledFrames* frames) const {
  std::size_t count = native.frames.size();
  std::string interpreter;
  for (std::size_t i = 0; below_python && i < count; ++i) {
    const sample_native::NativeFunction& function = native_->function(native.frames[i]);
    if (!function.is_interpreter) continue;
    interpreter = function.library;
    count = i;
  }
  if (below_python ? interpreter.empty() : !native.is_whole)
    frames->emplace_back(kUnknownCallers, 0);
  for (std::size_t i = count; i-- > 0;) {
    const sample_native::NativeFunction& function = native_->function(native.frames[i]);
    if (below_python && !interpreter.empty() && function.library == interpreter) continue;
    frames->emplace_back(text_of(function), 0);
  }
}

}  // namespace lanescope::cli
