#include "lanescope/sample/child_samples.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "lanescope/sample/descendants.h"
#include "lanescope/sample/find_python.h"
#include "lanescope/sample/process_memory.h"

namespace lanescope::sample {
namespace {

constexpr std::int64_t kFindEveryNs = 200'000'000;
constexpr std::int64_t kFindShare = 200;  // looking for children takes at most a part of the time
// A process may become another program (exec), and its interpreter takes a moment to start.
constexpr int kMostAttachTries = 25;
constexpr int kMostFailures = 50;  // samples in a row
constexpr std::size_t kMostKnownThreads = 4096;

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The program that the process runs; empty: unknown.
std::string program_of(pid_t process) {
  char path[4096];
  const ssize_t size = readlink(fmt::format("/proc/{}/exe", process).c_str(), path, sizeof path);
  return std::string(path, size > 0 ? static_cast<std::size_t>(size) : 0);
}

bool has_thread(pid_t process, std::uint64_t thread) {
  return access(fmt::format("/proc/{}/task/{}", process, thread).c_str(), F_OK) == 0;
}

}  // namespace

struct ChildSamples::Child {
  explicit Child(pid_t process) : pid(process), memory(process) {}

  pid_t pid;
  RunningProcess memory;
  std::optional<PythonLayout> layout;
  std::unique_ptr<StackReader> reader;  // null: not sampled (yet)
  std::unique_ptr<SampleRuns> runs;
  std::string program;
  bool is_other = false;  // the program is no Python
  int tries = 0, failures = 0;
  bool is_unreadable = false;
  std::uint64_t stacks = 0, unread_before = 0, torn_before = 0;
  std::unordered_map<std::uint64_t, std::uint64_t>
      threads;  // as the interpreter has it -> as it is

  // The thread that forked is the main thread of the child, but interpreters up to 3.12 keep its
  // number of before.
  std::uint64_t thread_of(std::uint64_t number) {
    if (threads.size() > kMostKnownThreads) threads.clear();
    const auto [known, is_new] = threads.try_emplace(number, number);
    if (is_new && !has_thread(pid, number)) known->second = static_cast<std::uint64_t>(pid);
    return known->second;
  }
  std::uint64_t torn() const { return torn_before + (reader ? reader->counts().torn : 0); }
};

ChildSamples::ChildSamples(const Own& own, std::chrono::nanoseconds period,
                           std::vector<std::string> prefixes)
    : own_(own), period_(period), prefixes_(std::move(prefixes)) {}
ChildSamples::~ChildSamples() = default;

// Looking at each program's symbols again and again would cost too much: a program that is no Python
// stays one until the process runs another.
void ChildSamples::attach_again(Child& child) {
  if (std::string program = program_of(child.pid); program != child.program) {
    child.program = std::move(program);
    child.is_other = false;
    child.tries = 0;
  }
  if (!child.is_other && child.tries < kMostAttachTries) attach(child);
}

// Finds the child's interpreter. It may come later: then the next find() tries again.
void ChildSamples::attach(Child& child) {
  ++child.tries;
  std::uint64_t code_type = own_.code_type;
  std::uint64_t interpreter = first_interpreter(child.memory, own_.layout, own_.runtime);
  child.layout = own_.layout;
  if (interpreter == 0 ||
      interpreter != own_.interpreter) {  // it was not forked, or became another
    const Result<FoundPython> found = find_python(child.pid, child.memory);
    if (!found) {
      child.is_unreadable = child.memory.refusal() == EPERM;
      child.is_other = child.memory.refusal() == 0;
      return;
    }
    const Result<PythonLayout> layout =
        find_layout(child.memory, found->runtime, found->version_hex);
    if (!layout) {
      child.is_unreadable = true;
      return;
    }
    child.layout = *layout;
    code_type = 0;
    interpreter = first_interpreter(child.memory, *layout, found->runtime);
  }
  if (interpreter == 0) return;
  child.is_unreadable = false;
  child.failures = 0;
  child.threads.clear();
  child.runs.reset();
  child.reader = std::make_unique<StackReader>(child.memory, *child.layout, interpreter, code_type);
  child.unread_before = 0;
  child.runs = std::make_unique<SampleRuns>(*child.reader, period_, prefixes_,
                                            static_cast<std::uint32_t>(child.pid));
}

// No more samples of it.
void ChildSamples::end(Child& child) {
  if (child.runs) child.runs->write_all();
  child.torn_before = child.torn();
  child.runs.reset();
  child.reader.reset();
}

void ChildSamples::find(std::int64_t now) {
  const std::vector<pid_t> found = find_descendants(getpid(), kMostChildren);
  const std::unordered_set<pid_t> alive(found.begin(), found.end());
  for (auto each = known_.begin(); each != known_.end();) {
    Child& child = *each->second;
    if (alive.contains(each->first)) {
      if (!child.reader) attach_again(child);
      ++each;
      continue;
    }
    end(child);
    counts_.processes += child.stacks != 0;
    counts_.stacks += child.stacks;
    counts_.torn += child.torn();
    counts_.unreadable += child.is_unreadable;
    each = known_.erase(each);
  }
  // A new one is attached to the next time: one that was forked may be about to become another program.
  for (const pid_t pid : found)
    if (!known_.contains(pid)) known_.emplace(pid, std::make_unique<Child>(pid));
  read_.clear();
  for (const auto& [pid, child] : known_)
    if (child->reader) read_.push_back(child.get());
  std::sort(read_.begin(), read_.end(),
            [](const Child* a, const Child* b) { return a->pid < b->pid; });
  for (Child* const child : read_)
    child->runs->set_period(period_ * static_cast<std::int64_t>(read_.size()));
  find_at_ns_ = now + std::max(kFindEveryNs, kFindShare * (now_ns() - now));
}

void ChildSamples::take(const SampleTime& time) {
  if (time.ns >= find_at_ns_) find(time.ns);
  if (read_.empty()) return;
  next_ = next_ + 1 < read_.size() ? next_ + 1 : 0;
  Child& child = *read_[next_];
  std::vector<SampledStack> stacks = child.reader->sample();
  for (SampledStack& stack : stacks) stack.thread = child.thread_of(stack.thread);
  const std::uint64_t added = child.runs->add(stacks, std::nullopt, time);
  child.stacks += added;
  taken_.store(taken() + added, std::memory_order_relaxed);  // one writer
  const std::uint64_t unread = child.reader->counts().lost_samples;
  child.failures = unread != child.unread_before ? child.failures + 1 : 0;
  child.unread_before = unread;
  if (child.failures < kMostFailures) return;
  end(child);  // it is found again if it has become another Python
  read_.erase(read_.begin() + static_cast<std::ptrdiff_t>(next_));
  for (Child* const each : read_)
    each->runs->set_period(period_ * static_cast<std::int64_t>(read_.size()));
}

void ChildSamples::write_all() {
  for (Child* const child : read_) child->runs->write_all();
}

void ChildSamples::forget() {
  for (Child* const child : read_) child->runs->forget();
}

ChildSamples::Counts ChildSamples::counts() const {
  Counts all = counts_;
  for (const auto& [pid, child] : known_) {
    all.processes += child->stacks != 0;
    all.stacks += child->stacks;
    all.torn += child->torn();
    all.unreadable += child->is_unreadable;
  }
  return all;
}

}  // namespace lanescope::sample
