#include "lanescope/sample_native/native_stacks.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include "lanescope/sample/find_python.h"

namespace lanescope::sample_native {
namespace {

constexpr std::int64_t kFindEvery = 200'000'000;  // threads and mapped files, in ns
constexpr std::size_t kPage = 4096;

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// The thread's id in the innermost namespace: the one that the process itself sees.
std::uint64_t own_id(pid_t pid, pid_t thread) {
  std::ifstream status(fmt::format("/proc/{}/task/{}/status", pid, thread));
  std::string line;
  while (std::getline(status, line)) {
    if (!line.starts_with("NSpid:")) continue;
    const std::size_t at = line.find_last_of("\t ");
    if (at != std::string::npos) return std::strtoull(line.c_str() + at + 1, nullptr, 10);
  }
  return static_cast<std::uint64_t>(thread);
}

}  // namespace

std::optional<WaitingPlace> parse_waiting(const std::string& line) {
  // "number six arguments stack instruction"; "-1 stack instruction" is no system call
  if (line.empty() || line[0] < '0' || line[0] > '9') return std::nullopt;
  const std::size_t last = line.rfind(' ');
  if (last == std::string::npos || last == 0) return std::nullopt;
  const std::size_t before = line.rfind(' ', last - 1);
  if (before == std::string::npos) return std::nullopt;
  const auto number = [&](std::size_t from, std::size_t to, std::uint64_t* value) {
    if (line.compare(from, 2, "0x") != 0) return false;
    const auto [end, error] = std::from_chars(line.data() + from + 2, line.data() + to, *value, 16);
    return error == std::errc() && end == line.data() + to;
  };
  WaitingPlace place;
  if (!number(before + 1, last, &place.stack) ||
      !number(last + 1, line.size(), &place.instruction) || place.stack == 0)
    return std::nullopt;
  return place;
}

NativeStacks::NativeStacks(pid_t pid, sample::ProcessMemory& memory, std::int64_t period_ns)
    : pid_(pid), memory_(memory), modules_(pid), unwinder_(pid), running_(period_ns) {}

NativeStacks::~NativeStacks() {
  for (const auto& [thread, one] : threads_)
    if (one.file >= 0) close(one.file);
}

Result<void> NativeStacks::begin() {
#if !defined(__x86_64__)
  return Error{Errc::kUnavailable, "native frames: expected a machine with x86-64, found another"};
#endif
  find_threads();
  if (threads_.empty())
    return Error{Errc::kUnavailable, fmt::format("expected process {}, found none; {}", pid_,
                                                 sample::advice_on(ESRCH, pid_))};
  std::string line;
  const bool can_read = std::any_of(threads_.begin(), threads_.end(),
                                    [&](auto& one) { return read_line(one.second, &line); });
  if (can_read) {
    before_python();
    after_python();
    counts_ = {};
    return {};
  }
  return Error{Errc::kUnavailable,
               fmt::format("expected to read /proc/{}/task/*/syscall, found: {}; {}", pid_,
                           std::strerror(errno), sample::advice_on(EPERM, pid_))};
}

void NativeStacks::find_threads() {
  if (modules_.refresh()) {
    unwinder_.use(modules_);
    for (auto& [thread, one] : threads_) one.walked_line.clear();
  }
  for (auto& [thread, one] : threads_) one.seen = false;
  if (DIR* folder = opendir(fmt::format("/proc/{}/task", pid_).c_str())) {
    while (const dirent* entry = readdir(folder)) {
      const auto id = static_cast<pid_t>(std::atoi(entry->d_name));
      if (id <= 0) continue;
      const auto known = threads_.find(id);
      if (known != threads_.end()) {
        known->second.seen = true;
        continue;
      }
      if (threads_.size() >= kMostThreads) continue;
      Thread& thread = threads_[id];
      thread.seen = true;
      thread.id = own_id(pid_, id);
      std::ifstream name(fmt::format("/proc/{}/task/{}/comm", pid_, id));
      std::getline(name, thread.name);
      thread.file =
          open(fmt::format("/proc/{}/task/{}/syscall", pid_, id).c_str(), O_RDONLY | O_CLOEXEC);
    }
    closedir(folder);
  }
  for (auto one = threads_.begin(); one != threads_.end();) {
    if (one->second.seen) {
      ++one;
      continue;
    }
    if (one->second.file >= 0) close(one->second.file);
    running_.forget(one->first);
    one = threads_.erase(one);
  }
}

bool NativeStacks::read_line(Thread& thread, std::string* line) const {
  char text[256];
  const ssize_t size = thread.file < 0 ? -1 : pread(thread.file, text, sizeof text, 0);
  line->assign(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!line->empty() && line->back() == '\n') line->pop_back();
  return !line->empty();
}

// Up to the end of its mapping. Where pages are missing in between, what lies before them.
void NativeStacks::copy_stack(Thread& thread) {
  thread.stack.clear();
  const auto place = parse_waiting(thread.line_before);
  if (!place) return;
  const std::uint64_t end = modules_.end_of_mapping(place->stack);
  // A thread that began since the last look has its stack in a mapping that is not known yet.
  const std::uint64_t size =
      end > place->stack ? std::min<std::uint64_t>(end - place->stack, kMostStackBytes) : kPage;
  thread.stack_at = place->stack;
  thread.stack.resize(size);
  std::vector<sample::MemoryPiece> pieces;
  for (std::uint64_t at = 0; at < size;) {
    const std::uint64_t piece = std::min(size - at, kPage - (place->stack + at) % kPage);
    pieces.push_back({place->stack + at, thread.stack.data() + at, piece});
    at += piece;
  }
  memory_.read(pieces);
  std::size_t good = 0;
  for (const sample::MemoryPiece& piece : pieces) {
    if (!piece.ok) break;
    good += piece.size;
  }
  thread.stack.resize(good);
}

void NativeStacks::before_python() {
  const std::int64_t now = now_ns();
  if (now >= find_at_ns_) {
    find_threads();
    find_at_ns_ = now_ns() + kFindEvery;
  }
  for (auto& [id, thread] : threads_) {
    if (!read_line(thread, &thread.line_before)) continue;
    if (thread.line_before != thread.walked_line) copy_stack(thread);
  }
}

void NativeStacks::walk(Thread& thread, const NativeRegisters& registers, std::uint64_t stack_at,
                        std::span<const std::byte> stack) {
  const NativeCallers callers = unwinder_.walk(registers, stack_at, stack);
  thread.result.frames.clear();
  for (const std::uint64_t address : callers.addresses)
    thread.result.frames.push_back(
        modules_.function_at(address, address != callers.addresses.front()));
  thread.result.is_whole = callers.is_whole;
}

bool NativeStacks::finish_waiting(Thread& thread) {
  if (thread.line_before == thread.walked_line) return true;
  const auto place = parse_waiting(thread.line_before);
  if (!place) return false;
  NativeRegisters registers;
  registers.values[NativeRegisters::kStack] = place->stack;
  registers.values[NativeRegisters::kInstruction] = place->instruction;
  walk(thread, registers, thread.stack_at, thread.stack);
  thread.walked_line = thread.line_before;
  return true;
}

const std::vector<NativeStack>& NativeStacks::after_python() {
  found_.clear();
  for (auto& [id, thread] : threads_) {
    if (!read_line(thread, &thread.line)) continue;  // it has ended
    thread.result.thread = thread.id;
    thread.result.name = thread.name;
    thread.result.time_ns = now_ns();
    const bool waits = parse_waiting(thread.line).has_value();
    if (waits && thread.line == thread.line_before && finish_waiting(thread)) {
      thread.result.waits = true;
      ++counts_.waiting;
      found_.push_back(thread.result);
      continue;
    }
    thread.result.waits = false;
    thread.walked_line.clear();
    if (running_.take(id, &sample_)) {
      walk(thread, sample_.registers, sample_.registers.values[NativeRegisters::kStack].value_or(0),
           sample_.stack);
      thread.result.time_ns = sample_.time_ns;
      ++counts_.running;
    } else {
      thread.result.frames.clear();
      ++(waits || thread.line != thread.line_before ? counts_.moved : counts_.unseen);
    }
    found_.push_back(thread.result);
  }
  return found_;
}

}  // namespace lanescope::sample_native
