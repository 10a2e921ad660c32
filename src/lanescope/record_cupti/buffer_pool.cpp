#include "lanescope/record_cupti/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace lanescope::record_cupti {
namespace {
constexpr std::size_t kMaxSpills = 1024;
}

BufferPool::BufferPool(std::size_t bytes, std::size_t limit) : bytes_(bytes), limit_(limit) {
  const std::size_t most = 2 * limit + kMaxSpills;  // as many written off as there are
  places_.reserve(most);
  ready_.reserve(most);
  completed_.resize(most);
}

// The kernel touches it at once; a fresh mapping is zero. Pages are aligned well beyond
// CUPTI's 8 bytes.
std::uint8_t* BufferPool::make() noexcept {
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(at);
}

// With the lock held, where there is room (see take).
std::uint32_t BufferPool::place_for(std::uint8_t* data, State state, bool is_spill) noexcept {
  const auto free = std::find_if(places_.begin(), places_.end(),
                                 [](const Place& place) { return place.state == State::kFree; });
  const auto at = static_cast<std::uint32_t>(free - places_.begin());
  if (free == places_.end())
    places_.push_back({data, state, is_spill});
  else
    *free = {data, state, is_spill};
  return at;
}

// With the lock held, for a buffer that was written off.
void BufferPool::count_as_outstanding(const Place& place) noexcept {
  --written_off_;
  ++(place.is_spill ? spills_ : made_);
  ++outstanding_;
}

std::uint8_t* BufferPool::take() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!ready_.empty()) {
      Place& place = places_[ready_.back()];
      ready_.pop_back();
      place.state = State::kOutstanding;
      ++outstanding_;
      return place.data;
    }
    if (made_ >= limit_ || made_ + written_off_ >= 2 * limit_) {
      ++refused_;
      return nullptr;
    }
    ++made_;
  }
  std::uint8_t* buffer = make();
  const std::lock_guard lock(mutex_);
  if (!buffer) {
    --made_;
    ++refused_;
    return nullptr;
  }
  place_for(buffer, State::kOutstanding, false);
  ++outstanding_;
  return buffer;
}

std::uint8_t* BufferPool::take_spill() noexcept {
  void* at = mmap(nullptr, kSpillBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  auto* buffer = static_cast<std::uint8_t*>(at);
  const std::lock_guard lock(mutex_);
  if (spills_ + written_off_ >= kMaxSpills) {  // 64 MiB of them: something else is wrong
    munmap(at, kSpillBytes);
    return nullptr;
  }
  ++spills_;
  place_for(buffer, State::kOutstanding, true);
  ++outstanding_;
  return buffer;
}

bool BufferPool::complete(Buffer buffer) noexcept {
  const std::lock_guard lock(mutex_);
  const auto place = std::find_if(places_.begin(), places_.end(), [&](const Place& candidate) {
    return candidate.data == buffer.data &&
           (candidate.state == State::kOutstanding || candidate.state == State::kWrittenOff);
  });
  if (place == places_.end()) return false;
  if (place->state == State::kWrittenOff) count_as_outstanding(*place);
  place->state = State::kCompleted;
  ++completed_so_far_;
  buffer.place = static_cast<std::uint32_t>(place - places_.begin());
  completed_[(first_completed_ + completed_count_++) % completed_.size()] = buffer;
  return true;
}

Buffer BufferPool::next_completed() noexcept {
  const std::lock_guard lock(mutex_);
  if (completed_count_ == 0) return {};
  const Buffer buffer = completed_[first_completed_];
  first_completed_ = (first_completed_ + 1) % completed_.size();
  --completed_count_;
  return buffer;
}

void BufferPool::recycle(Buffer buffer) noexcept {
  if (!is_spill(buffer))  // more than it wrote may be touched
    std::memset(buffer.data, 0, std::min(buffer.bytes, bytes_));
  const std::lock_guard lock(mutex_);
  Place& place = places_[buffer.place];
  --outstanding_;
  if (place.is_spill) {
    munmap(buffer.data, kSpillBytes);
    place = {};
    --spills_;
    return;
  }
  place.state = State::kReady;
  ready_.push_back(buffer.place);
}

void BufferPool::prepare(std::size_t count) noexcept {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (ready_.size() >= count || made_ >= limit_ || made_ + written_off_ >= 2 * limit_) return;
      ++made_;
    }
    std::uint8_t* buffer = make();
    const std::lock_guard lock(mutex_);
    if (!buffer) {
      --made_;
      return;
    }
    ready_.push_back(place_for(buffer, State::kReady, false));
  }
}

std::size_t BufferPool::write_off() noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (Place& place : places_) {
    if (place.state != State::kOutstanding) continue;
    place.state = State::kWrittenOff;
    --(place.is_spill ? spills_ : made_);
    ++count;
  }
  outstanding_ -= count;
  written_off_ += count;
  return count;
}

void BufferPool::restore_written_off() noexcept {
  const std::lock_guard lock(mutex_);
  for (Place& place : places_) {
    if (place.state != State::kWrittenOff) continue;
    place.state = State::kOutstanding;
    count_as_outstanding(place);
  }
}

std::size_t BufferPool::ready() const noexcept {
  const std::lock_guard lock(mutex_);
  return ready_.size();
}
std::size_t BufferPool::made() const noexcept {
  const std::lock_guard lock(mutex_);
  return made_;
}
std::size_t BufferPool::outstanding() const noexcept {
  const std::lock_guard lock(mutex_);
  return outstanding_;
}
std::size_t BufferPool::written_off() const noexcept {
  const std::lock_guard lock(mutex_);
  return written_off_;
}
std::uint64_t BufferPool::completed() const noexcept {
  const std::lock_guard lock(mutex_);
  return completed_so_far_;
}
std::uint64_t BufferPool::refused() const noexcept {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace lanescope::record_cupti
