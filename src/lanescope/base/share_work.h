// Pieces of work that do not depend on each other, on several threads.
#pragma once
#include <cstddef>
#include <functional>

namespace lanescope {

// How many threads share work when nobody says: usable_cores(), at most 8.
unsigned usual_threads();

// Calls work(0) to work(count - 1), each once, and starts them in this order. Uses `threads`
// threads, the caller's among them (0: usual_threads()), or fewer if the system gives no more.
// Returns when all calls have ended. If calls throw, it throws what the one with the lowest number
// threw; calls that have not started by then are left out.
void share_work(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace lanescope
