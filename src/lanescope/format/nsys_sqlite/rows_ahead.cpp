#include "lanescope/format/nsys_sqlite/rows_ahead.h"

#include <system_error>
#include <utility>

namespace lanescope::format {
namespace {

constexpr std::size_t kMostFullBatches = 4;

}  // namespace

RowsAhead::~RowsAhead() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  has_room_.notify_one();
  thread_.join();
}

const RowBatch* RowsAhead::next() {
  if (thread_.joinable()) return take();
  if (filled_ == 1 && has_more_ && may_start_) {
    start();
    if (thread_.joinable()) return take();
  }
  if (!has_more_) return nullptr;
  own_.clear();
  has_more_ = fill_(own_);
  ++filled_;
  return &own_;
}

void RowsAhead::start() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {  // the system has no more threads for us
    ++filled_;
  }
}

void RowsAhead::work() {
  std::unique_lock lock(mutex_);
  while (!stop_ && !is_over_) {
    has_room_.wait(lock, [this] { return stop_ || full_.size() < kMostFullBatches; });
    if (stop_) return;
    std::unique_ptr<RowBatch> batch;
    if (!spare_.empty()) {
      batch = std::move(spare_.front());
      spare_.pop_front();
    }
    lock.unlock();
    bool has_more = false;
    std::exception_ptr thrown;
    try {
      if (!batch) batch = std::make_unique<RowBatch>();
      batch->clear();
      has_more = fill_(*batch);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (!thrown) full_.push_back(std::move(batch));
    is_over_ = !has_more;
    thrown_ = thrown;
    has_batch_.notify_one();
  }
}

const RowBatch* RowsAhead::take() {
  std::unique_lock lock(mutex_);
  if (used_) spare_.push_back(std::move(used_));
  has_batch_.wait(lock, [this] { return is_over_ || !full_.empty(); });
  if (full_.empty()) {
    if (thrown_) std::rethrow_exception(thrown_);
    return nullptr;
  }
  used_ = std::move(full_.front());
  full_.pop_front();
  lock.unlock();
  has_room_.notify_one();
  return used_.get();
}

}  // namespace lanescope::format
