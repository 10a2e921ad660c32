// How the workers of one analysis send each other data. The analysis is the same for one worker and
// for many. This folder knows nothing of MPI; ranks_mpi/ has the Communicator for it.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lanescope::ranks {

// Every worker calls the same functions in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::uint32_t worker() const = 0;   // from 0
  virtual std::uint32_t workers() const = 0;  // at least 1
  // One message to each worker; returns one from each, in the order of workers. Blocks until all call it.
  virtual std::vector<std::string> exchange(std::vector<std::string> to) = 0;

  // On worker 0 the texts of all workers, in their order; elsewhere nothing.
  std::vector<std::string> gather(std::string own);
  // The text of worker 0, on every worker.
  std::string broadcast(std::string text);
  // The texts of all workers, on every worker.
  std::vector<std::string> share(const std::string& own);
};

// The Communicator of one worker alone: what it sends comes back to it.
class SingleWorker final : public Communicator {
 public:
  std::uint32_t worker() const override { return 0; }
  std::uint32_t workers() const override { return 1; }
  std::vector<std::string> exchange(std::vector<std::string> to) override { return to; }
};

template <class T>
std::string bytes_of(const std::vector<T>& rows) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(T)};
}
template <class T>
void append_rows(const std::string& bytes, std::vector<T>& rows) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t before = rows.size(), count = bytes.size() / sizeof(T);
  rows.resize(before + count);
  if (count > 0) std::memcpy(rows.data() + before, bytes.data(), count * sizeof(T));
}

// Rows for each worker; returns what all workers sent to this one, in the order of workers.
template <class T>
std::vector<T> exchange_rows(Communicator& workers, std::vector<std::vector<T>> to) {
  if (workers.workers() == 1) return std::move(to.front());
  std::vector<std::string> messages;
  for (std::vector<T>& rows : to) {
    messages.push_back(bytes_of(rows));
    std::vector<T>().swap(rows);
  }
  std::vector<T> out;
  for (std::string& message : workers.exchange(std::move(messages))) {
    append_rows(message, out);
    std::string().swap(message);
  }
  return out;
}

// All workers' rows, on every worker.
template <class T>
std::vector<T> share_rows(Communicator& workers, std::vector<T> own) {
  if (workers.workers() == 1) return own;
  std::vector<T> out;
  for (const std::string& message : workers.share(bytes_of(own))) append_rows(message, out);
  return out;
}

// All workers' rows, on worker 0.
template <class T>
std::vector<T> gather_rows(Communicator& workers, std::vector<T> own) {
  if (workers.workers() == 1) return own;
  std::vector<T> out;
  for (const std::string& message : workers.gather(bytes_of(own))) append_rows(message, out);
  return out;
}

}  // namespace lanescope::ranks
