#include "lanescope/cli/follow_trace.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "lanescope/cli/newest_trace.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookEvery{2000}, kNap{100};
// Reading takes at most this part of the time, so that a large recording does not keep a core busy.
constexpr int kPauseFactor = 10;

struct Seen {
  std::string path;
  fs::file_time_type changed;
  std::uintmax_t bytes = 0;
  bool operator==(const Seen&) const = default;
};

Seen look(const std::string& path) {
  Seen seen{path, {}, 0};
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    const Result<NewestTrace> newest = newest_trace_in(path);
    if (newest) seen.path = newest->path;
  }
  seen.changed = fs::last_write_time(seen.path, failed);
  seen.bytes = fs::file_size(seen.path, failed);
  return seen;
}

}  // namespace

bool may_grow(const std::string& path) {
  std::error_code failed;
  return fs::is_directory(path, failed) || path.ends_with(".lspool");
}

TraceFollower::TraceFollower(std::string path, std::shared_ptr<server::Session> session)
    : path_(std::move(path)), session_(std::move(session)), thread_([this] { run(); }) {}

TraceFollower::~TraceFollower() {
  ending_.store(true, std::memory_order_relaxed);
  thread_.join();
}

void TraceFollower::run() {
  Seen known = look(path_);
  Clock::duration pause = kLookEvery;
  Clock::time_point next = Clock::now() + pause;
  while (!ending_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(kNap);
    if (Clock::now() < next) continue;
    const Seen seen = look(path_);
    if (seen != known) {
      const Clock::time_point begin = Clock::now();
      Result<Trace> trace = format::read_trace(seen.path);
      // A file that cannot be read now may be half written: look again.
      if (trace && trace->slices().size() > 0) {
        auto state = server::TraceState::make(std::move(*trace), seen.path);
        if (state) session_->replace(std::move(*state));
        known = seen;
      }
      pause = std::max<Clock::duration>(kLookEvery, kPauseFactor * (Clock::now() - begin));
    }
    next = Clock::now() + pause;
  }
}

}  // namespace lanescope::cli
