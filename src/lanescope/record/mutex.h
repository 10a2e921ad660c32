// A mutex that clang's -Wthread-safety follows; std::mutex of libstdc++ carries no annotations.
#pragma once
#include <mutex>

#if defined(__clang__)
#define LANESCOPE_THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define LANESCOPE_THREAD_ATTRIBUTE(attribute)
#endif
#define LANESCOPE_GUARDED_BY(mutex) LANESCOPE_THREAD_ATTRIBUTE(guarded_by(mutex))
#define LANESCOPE_REQUIRES(mutex) LANESCOPE_THREAD_ATTRIBUTE(requires_capability(mutex))
#define LANESCOPE_EXCLUDES(mutex) LANESCOPE_THREAD_ATTRIBUTE(locks_excluded(mutex))
#define LANESCOPE_ACQUIRE(...) LANESCOPE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define LANESCOPE_RELEASE(...) LANESCOPE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define LANESCOPE_NO_THREAD_SAFETY LANESCOPE_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace lanescope::record {

class LANESCOPE_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() LANESCOPE_ACQUIRE() { mutex_.lock(); }
  bool try_lock() LANESCOPE_THREAD_ATTRIBUTE(try_acquire_capability(true)) {
    return mutex_.try_lock();
  }
  void unlock() LANESCOPE_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class LANESCOPE_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LANESCOPE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() LANESCOPE_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace lanescope::record
