#include "lanescope/codec/members_ahead.h"

#include <algorithm>
#include <new>
#include <span>
#include <system_error>
#include <utility>

namespace lanescope::codec {
namespace {

constexpr std::size_t kFirstTextBytes = 512u << 10;
constexpr std::size_t kOpenTextBytes = 64u << 20;
constexpr std::size_t kMostSpareParts = 4;

bool make_room(MemberPart& part) {
  if (part.text_size < part.text.size()) return true;
  if (part.text.size() >= kMostTextBytes) return false;
  part.text.resize(std::min(std::max(part.text.size() * 2, kFirstTextBytes), kMostTextBytes));
  return true;
}

// A thread without memory leaves its part to the caller, who needs less as a stream.
void unpack_or_leave(Packing packing, std::unique_ptr<Inflater>& inflater, MemberPart& part) {
  try {
    if (!inflater) inflater = part_inflater(packing);
    unpack_part(packing, *inflater, part);
  } catch (const std::bad_alloc&) {
    part.is_whole = false;
  }
}

}  // namespace

void unpack_part(Packing packing, Inflater& inflater, MemberPart& part) {
  part.is_whole = false;
  part.text_size = 0;
  inflater.reset();
  std::string_view packed(part.packed.data(), part.packed.size());
  while (make_room(part)) {
    const InflateStep step = inflater.step(packed, std::span(part.text).subspan(part.text_size));
    packed.remove_prefix(step.used);
    part.text_size += step.made;
    if (step.error != nullptr || step.checksum_is_wrong) return;
    if (step.member_ended) {
      part.is_whole = packed.empty();
      if (part.is_whole || detect_packing(packed) != packing) return;
      inflater.reset();
    } else if (step.used == 0 && step.made == 0) {
      return;  // the last member ends after the part
    }
  }
}

MembersAhead::MembersAhead(Packing packing, unsigned threads)
    : packing_(packing), thread_count_(threads) {}

MembersAhead::~MembersAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    waiting_.clear();
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// The caller unpacks, too, so any number of them is enough.
void MembersAhead::start_threads() {
  if (!threads_.empty()) return;
  try {
    while (threads_.size() < thread_count_) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // the system has no more threads for us
  }
}

void MembersAhead::work() {
  std::unique_ptr<Inflater> inflater;
  std::unique_lock lock(mutex_);
  for (;;) {
    has_work_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    Open* const open = waiting_.front();
    waiting_.pop_front();
    open->state = State::kBeingUnpacked;
    lock.unlock();
    unpack_or_leave(packing_, inflater, *open->part);
    lock.lock();
    open->state = State::kDone;
    has_result_.notify_one();
  }
}

bool MembersAhead::is_full() const {
  const std::size_t by_text = kOpenTextBytes / std::max(largest_text_, kFirstTextBytes);
  return open_.size() >=
         std::min<std::size_t>(2 * thread_count_ + 1, std::max<std::size_t>(by_text, 2));
}

std::unique_ptr<MemberPart> MembersAhead::spare_part() {
  if (free_.empty()) return std::make_unique<MemberPart>();
  std::unique_ptr<MemberPart> part = std::move(free_.back());
  free_.pop_back();
  return part;
}

void MembersAhead::reuse(std::unique_ptr<MemberPart> part) {
  if (free_.size() < kMostSpareParts) free_.push_back(std::move(part));
}

void MembersAhead::submit(std::unique_ptr<MemberPart> part) {
  start_threads();
  open_.push_back(std::make_unique<Open>(Open{std::move(part)}));
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(open_.back().get());
  }
  has_work_.notify_one();
}

std::unique_ptr<MemberPart> MembersAhead::take_first() {
  Open& first = *open_.front();
  {
    std::unique_lock lock(mutex_);
    if (first.state == State::kWaiting) {
      waiting_.pop_front();  // parts are taken in order, so it is the first of those that wait
      lock.unlock();
      unpack_or_leave(packing_, own_inflater_, *first.part);
    } else {
      has_result_.wait(lock, [&first] { return first.state == State::kDone; });
    }
  }
  std::unique_ptr<MemberPart> part = std::move(first.part);
  open_.pop_front();
  largest_text_ = std::max(largest_text_, part->text_size);
  return part;
}

}  // namespace lanescope::codec
