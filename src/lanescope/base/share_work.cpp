#include "lanescope/base/share_work.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "lanescope/base/usable_cores.h"

namespace lanescope {
namespace {

constexpr unsigned kMostThreads = 8;

// The pieces are handed out one by one, so a long one does not delay those after it.
class Handout {
 public:
  Handout(std::size_t count, const std::function<void(std::size_t)>& work)
      : count_(count), work_(work) {}

  void take_all() {
    for (std::size_t piece; (piece = next_.fetch_add(1)) < count_;) {
      try {
        work_(piece);
      } catch (...) {
        next_ = count_;
        const std::lock_guard lock(mutex_);
        if (piece < failed_) failed_ = piece, failure_ = std::current_exception();
      }
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  const std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;  // guards both below
  std::size_t failed_ = ~std::size_t{0};
  std::exception_ptr failure_;
};

}  // namespace

unsigned usual_threads() { return std::min(usable_cores(), kMostThreads); }

void share_work(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  const std::size_t most = std::min<std::size_t>(threads == 0 ? usual_threads() : threads, count);
  Handout handout(count, work);
  std::vector<std::thread> others;
  try {
    others.reserve(most);
    while (others.size() + 1 < most) others.emplace_back([&handout] { handout.take_all(); });
  } catch (const std::system_error&) {  // the system has no more threads for us
  }
  handout.take_all();
  for (std::thread& thread : others) thread.join();
  handout.rethrow();
}

}  // namespace lanescope
