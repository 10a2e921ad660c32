// The tracks of a recording's threads. Each is made, with its name, at its first event.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lanescope/format/spool/spool_index.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// Borrows both. One thread.
class ThreadTracks {
 public:
  ThreadTracks(const SpoolIndex& index, TraceBuilder& builder) : index_(index), builder_(builder) {
    pid_.number = static_cast<std::int64_t>(index.pid);
  }
  const Scalar& pid() const { return pid_; }

  // By the number of its slot.
  TrackId of(std::uint32_t thread) {
    if (thread >= tracks_.size()) {
      if (thread > index_.threads.size() + 1'000'000) thread = 0;  // damage
      tracks_.resize(std::max<std::size_t>(thread + 1, index_.threads.size()), kNone<TrackId>);
    }
    if (tracks_[thread] != kNone<TrackId>) return tracks_[thread];
    const SpoolThread* info = thread < index_.threads.size() ? &index_.threads[thread] : nullptr;
    Scalar tid;
    tid.number = info ? info->os_tid : static_cast<std::int64_t>(thread);
    const TrackId track = builder_.thread_track(pid_, tid);
    if (info)
      builder_.set_track_name(
          track, builder_.intern(fmt::format("thread {} ({})", info->os_tid, info->name)));
    builder_.set_track_sort_index(track, tid.number);
    return tracks_[thread] = track;
  }

  // A thread that recorded no range has no slot.
  TrackId of_os_thread(std::uint32_t os_tid) {
    if (thread_by_os_tid_.empty() && !index_.threads.empty())
      for (std::uint32_t i = 0; i < index_.threads.size(); ++i)
        thread_by_os_tid_[index_.threads[i].os_tid] = i;
    if (const auto slot = thread_by_os_tid_.find(os_tid); slot != thread_by_os_tid_.end())
      return of(slot->second);
    const auto [known, is_new] = other_tracks_.try_emplace(os_tid);
    if (is_new) {
      Scalar tid;
      tid.number = os_tid;
      known->second = builder_.thread_track(pid_, tid);
      builder_.set_track_name(known->second, builder_.intern(fmt::format("thread {}", os_tid)));
      builder_.set_track_sort_index(known->second, tid.number);
    }
    return known->second;
  }

 private:
  const SpoolIndex& index_;
  TraceBuilder& builder_;
  Scalar pid_;
  std::vector<TrackId> tracks_;
  std::unordered_map<std::uint32_t, std::uint32_t> thread_by_os_tid_;
  std::unordered_map<std::uint32_t, TrackId> other_tracks_;
};

}  // namespace lanescope::format
