#include "lanescope/ranks_mpi/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

namespace lanescope::ranks_mpi {
namespace {

// MPI's own waiting spins. Until all are here, a worker that still reads may need the processor.
void wait_for_all() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  auto pause = std::chrono::microseconds(20);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
}

}  // namespace

Result<void> MpiSession::start(int* argc, char*** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level);
  if (level < MPI_THREAD_SERIALIZED)
    return Error{
        Errc::kUnavailable,
        "expected an MPI with MPI_THREAD_SERIALIZED, found one for a single thread; use an "
        "Open MPI or MPICH with threads"};
  return {};
}

void MpiSession::finish() { MPI_Finalize(); }

void MpiSession::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();
}

MpiCommunicator::MpiCommunicator() {
  int number = 0, count = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  worker_ = static_cast<std::uint32_t>(number);
  workers_ = static_cast<std::uint32_t>(count);
}

std::vector<std::string> MpiCommunicator::exchange(std::vector<std::string> to) {
  wait_for_all();
  ++exchanges_;
  const std::size_t n = workers_;
  std::vector<std::uint64_t> give(n), take(n);
  for (std::size_t i = 0; i < n; ++i) {
    give[i] = to[i].size();
    if (i != worker_) sent_bytes_ += to[i].size();
  }
  MPI_Alltoall(give.data(), 1, MPI_UINT64_T, take.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
  std::vector<std::string> from(n);
  for (std::size_t i = 0; i < n; ++i)
    if (i != worker_) from[i].resize(take[i]);
  // What stays here needs no copy.
  from[worker_] = std::move(to[worker_]);
  give[worker_] = take[worker_] = 0;

  std::uint64_t largest = *std::max_element(give.begin(), give.end());
  MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  const std::uint64_t piece = std::max<std::uint64_t>(4096, kMostBytesAtOnce / n);
  std::vector<int> give_counts(n), take_counts(n), give_at(n), take_at(n);
  std::string out, in;
  for (std::uint64_t done = 0; done < largest; done += piece) {
    out.clear();
    int in_size = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto part = [&](std::uint64_t size) {
        return static_cast<int>(size > done ? std::min(piece, size - done) : 0);
      };
      give_counts[i] = part(give[i]);
      take_counts[i] = part(take[i]);
      give_at[i] = static_cast<int>(out.size());
      take_at[i] = in_size;
      in_size += take_counts[i];
      if (give_counts[i] > 0) out.append(to[i], done, static_cast<std::size_t>(give_counts[i]));
    }
    in.resize(static_cast<std::size_t>(in_size));
    MPI_Alltoallv(out.data(), give_counts.data(), give_at.data(), MPI_BYTE, in.data(),
                  take_counts.data(), take_at.data(), MPI_BYTE, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < n; ++i)
      if (take_counts[i] > 0)
        from[i].replace(done, static_cast<std::size_t>(take_counts[i]), in,
                        static_cast<std::size_t>(take_at[i]),
                        static_cast<std::size_t>(take_counts[i]));
  }
  return from;
}

}  // namespace lanescope::ranks_mpi
