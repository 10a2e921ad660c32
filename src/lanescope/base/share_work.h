// Pieces of work that do not depend on each other, on several threads.
#pragma once
#include <cstddef>
#include <functional>

namespace lanescope {

// How many threads share work when nobody says: usable_cores(), at most 8.
unsigned usual_threads();

// Calls work(0) to work(count - 1), each once, in this order of beginning, on `threads` threads of
// which the caller's is one; fewer where the system gives no more. 0: usual_threads(). Returns when
// all have ended. Throws what the lowest piece that failed threw; pieces that have not begun by then
// are left out.
void share_work(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace lanescope
