#include "lanescope/ranks_mpi/file_handout.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace lanescope::ranks_mpi {
namespace {

constexpr int kAsk = 1, kAnswer = 2;
constexpr std::int64_t kNothingLeft = -1;

// What each worker reads, for the signal handler: written by worker 0's threads only. Process-wide,
// because a handler gets nothing passed in.
std::unique_ptr<std::atomic<std::int64_t>[]> g_reading;
std::uint32_t g_workers = 0;
const std::vector<std::string>* g_paths = nullptr;

void note_reading(std::uint32_t worker, std::int64_t file) {
  // Relaxed: the handler reads whatever is newest.
  if (worker < g_workers) g_reading[worker].store(file, std::memory_order_relaxed);
}

void say(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void say_number(std::uint32_t number) {
  char digits[12];
  std::size_t at = sizeof digits;
  do {
    digits[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  say({digits + at, sizeof digits - at});
}

// Only calls that a signal handler may make.
void on_terminate(int) {
  constexpr std::uint32_t kMostLines = 64;
  say("lanescope-mpi: ended before the answer: a worker was lost, or the run was stopped. Nothing "
      "was written.\n");
  std::uint32_t lines = 0;
  for (std::uint32_t i = 0; i < g_workers && lines < kMostLines; ++i) {
    const std::int64_t file = g_reading[i].load(std::memory_order_relaxed);
    if (file < 0) continue;
    ++lines;
    say("lanescope-mpi: worker ");
    say_number(i);
    say(" was reading ");
    say((*g_paths)[static_cast<std::size_t>(file)]);
    say("\n");
  }
  if (lines > 0)
    say("lanescope-mpi: try the lost worker's file alone: lanescope info FILE. A worker that was "
        "killed often needed more memory than there is: start fewer on each machine\n");
  _exit(1);
}

}  // namespace

FileHandout::FileHandout(std::uint32_t worker, std::uint32_t workers,
                         std::vector<std::size_t> order)
    : worker_(worker), workers_(workers), order_(std::move(order)) {
  if (worker_ == 0 && workers_ > 1) answering_ = std::thread([this] { answer_others(); });
}

FileHandout::~FileHandout() {
  if (answering_.joinable()) answering_.join();
}

std::int64_t FileHandout::take(std::uint32_t worker) {
  // Relaxed: only the number matters; the list does not change.
  const std::size_t place = given_.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t file =
      place < order_.size() ? static_cast<std::int64_t>(order_[place]) : kNothingLeft;
  note_reading(worker, file);
  return file;
}

std::optional<std::size_t> FileHandout::next() {
  std::int64_t file = kNothingLeft;
  if (worker_ == 0) {
    file = take(0);
  } else {
    MPI_Send(nullptr, 0, MPI_BYTE, 0, kAsk, MPI_COMM_WORLD);
    MPI_Recv(&file, 1, MPI_INT64_T, 0, kAnswer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (file < 0) return std::nullopt;
  return static_cast<std::size_t>(file);
}

// Until each of the others knows that nothing is left. Looks every 0.2 ms instead of waiting in
// MPI, which would keep a core busy.
void FileHandout::answer_others() {
  for (std::uint32_t left = workers_ - 1; left > 0;) {
    int is_there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kAsk, MPI_COMM_WORLD, &is_there, &status);
    if (is_there == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      continue;
    }
    MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, kAsk, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const std::int64_t file = take(static_cast<std::uint32_t>(status.MPI_SOURCE));
    MPI_Send(&file, 1, MPI_INT64_T, status.MPI_SOURCE, kAnswer, MPI_COMM_WORLD);
    if (file == kNothingLeft) --left;
  }
}

LostWorkerReport::LostWorkerReport(std::uint32_t workers, const std::vector<std::string>& paths) {
  g_reading = std::make_unique<std::atomic<std::int64_t>[]>(workers);
  for (std::uint32_t i = 0; i < workers; ++i)
    g_reading[i].store(kNothingLeft, std::memory_order_relaxed);
  g_paths = &paths;
  g_workers = workers;
  struct sigaction action {};
  action.sa_handler = on_terminate;
  sigaction(SIGTERM, &action, nullptr);
}

LostWorkerReport::~LostWorkerReport() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace lanescope::ranks_mpi
