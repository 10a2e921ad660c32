#include "lanescope/ranks/communicator.h"

#include <utility>

#include "lanescope/base/check.h"
#include "lanescope/ranks/message.h"

namespace lanescope::ranks {

std::vector<std::string> Communicator::gather(std::string own) {
  std::vector<std::string> to(workers());
  to.front() = std::move(own);
  std::vector<std::string> from = exchange(std::move(to));
  if (worker() != 0) from.clear();
  return from;
}

std::string Communicator::broadcast(std::string text) {
  std::vector<std::string> to(workers());
  if (worker() == 0)
    for (std::string& each : to) each = text;
  return std::move(exchange(std::move(to)).front());
}

std::vector<std::string> Communicator::share(const std::string& own) {
  return exchange(std::vector<std::string>(workers(), own));
}

const char* MessageReader::take(std::uint64_t bytes) {
  LANESCOPE_CHECK(bytes <= left_.size());
  const char* const at = left_.data();
  left_.remove_prefix(bytes);
  return at;
}

void MessageReader::check_rows(std::uint64_t count, std::size_t bytes) const {
  LANESCOPE_CHECK(count <= left_.size() / bytes);
}

}  // namespace lanescope::ranks
