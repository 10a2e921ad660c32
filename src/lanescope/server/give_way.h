// Runs long work with a lower priority, so that pictures come first.
#pragma once
#include <functional>

namespace lanescope::server {

// Runs `work` on a thread of its own and waits for its end. On a busy core that thread gets a third of the usual share. The
// caller's thread keeps its share: without special rights a thread can give its share away, but not get it
// back. What `work` throws is thrown here. If there can be no thread, it runs on the caller's. Any thread.
void run_giving_way(const std::function<void()>& work);

}  // namespace lanescope::server
