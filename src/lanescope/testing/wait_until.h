// Waits for something that another thread or process does.
#pragma once
#include <chrono>
#include <functional>
#include <thread>

namespace lanescope::testing {

// Asks every millisecond. False: not within two minutes. The limit is long because the machine may be busy.
inline bool wait_until(const std::function<bool()>& what) {
  using Clock = std::chrono::steady_clock;
  for (const auto until = Clock::now() + std::chrono::seconds(120); Clock::now() < until;) {
    if (what()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace lanescope::testing
