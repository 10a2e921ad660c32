#include "lanescope/record_cupti/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace lanescope::record_cupti {
namespace {
constexpr std::size_t kMaxSpills = 1024;
}

BufferPool::BufferPool(std::size_t bytes, std::size_t limit) : bytes_(bytes), limit_(limit) {
  ready_.reserve(limit);
  completed_.resize(limit + kMaxSpills);
}

// Touched by the kernel at once, zero as every fresh mapping. Pages are aligned far beyond CUPTI's
// 8 bytes.
std::uint8_t* BufferPool::make() noexcept {
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(at);
}

std::uint8_t* BufferPool::take() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!ready_.empty()) {
      std::uint8_t* buffer = ready_.back();
      ready_.pop_back();
      return buffer;
    }
    if (made_ == limit_) {
      ++refused_;
      return nullptr;
    }
    ++made_;
  }
  std::uint8_t* buffer = make();
  if (!buffer) {
    const std::lock_guard lock(mutex_);
    --made_;
    ++refused_;
  }
  return buffer;
}

std::uint8_t* BufferPool::take_spill() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (spills_ == kMaxSpills) return nullptr;  // 64 MiB of them: something else is wrong
    ++spills_;
  }
  void* at = mmap(nullptr, kSpillBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(at);
}

void BufferPool::complete(Buffer buffer) noexcept {
  const std::lock_guard lock(mutex_);
  if (completed_count_ == completed_.size()) return;  // more than were made: not ours
  completed_[(first_completed_ + completed_count_++) % completed_.size()] = buffer;
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
  if (is_spill(buffer)) {
    munmap(buffer.data, kSpillBytes);
    const std::lock_guard lock(mutex_);
    --spills_;
    return;
  }
  std::memset(buffer.data, 0, std::min(buffer.bytes, bytes_));  // more than it wrote may be touched
  const std::lock_guard lock(mutex_);
  if (ready_.size() < limit_) ready_.push_back(buffer.data);
}

void BufferPool::prepare(std::size_t count) noexcept {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (ready_.size() >= count || made_ == limit_) return;
      ++made_;
    }
    std::uint8_t* buffer = make();
    const std::lock_guard lock(mutex_);
    if (!buffer) {
      --made_;
      return;
    }
    ready_.push_back(buffer);
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
std::size_t BufferPool::outside() const noexcept {
  const std::lock_guard lock(mutex_);
  return made_ - ready_.size();
}
std::uint64_t BufferPool::refused() const noexcept {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace lanescope::record_cupti
