// Somebody cuts or deletes the recording's file while the program runs: the recording ends, the
// program does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/profiler.h"
#include "lanescope/record/activity_source.h"
#include "lanescope/testing/wait_until.h"
#include "recording_folder.h"

namespace lanescope {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::wait_until;
namespace fs = std::filesystem;

std::size_t count_of(const Trace& trace, std::string_view name) {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) count += trace.name(SliceId{i}) == name;
  return count;
}

class SpoolLossTest : public RecordingFolderTest {
 protected:
  // Runs in a child, because without the guard it dies; false: a line on stderr says where.
  template <typename Body>
  void in_child(const Body& body) const {
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << (WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "see above");
  }
  std::unique_ptr<record::Recorder> start(const std::string& name,
                                          record::RecorderOptions options = {}) const {
    options.spool_path = (directory_ / (name + ".lspool")).string();
    auto recorder = record::Recorder::open(options);
    EXPECT_TRUE(recorder) << recorder.error().message;
    EXPECT_TRUE((*recorder)->start());
    return std::move(recorder).value();
  }
  Trace read(const record::Recorder& recorder) const {
    auto trace = format::read_spool(recorder.spool_path());
    EXPECT_TRUE(trace) << trace.error().message;
    return std::move(trace).value();
  }
};

// Threads that record until they are asked to end.
class Workers {
 public:
  Workers() {
    for (int t = 0; t < 3; ++t)
      threads_.emplace_back([this] {
        while (!end_) {
          {
            LANESCOPE_RECORD_FUNCTION("work");
          }
          rounds_.fetch_add(1, std::memory_order_relaxed);
        }
      });
  }
  ~Workers() { stop(); }
  void stop() {
    end_ = true;
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  bool go_on(std::uint64_t rounds) const {
    const std::uint64_t until = rounds_ + rounds;
    return wait_until([&] { return rounds_ >= until; });
  }

 private:
  std::atomic<bool> end_{false};
  std::atomic<std::uint64_t> rounds_{0};
  std::vector<std::thread> threads_;
};

void expect_whole_recording(const std::string& path) {
  auto recorder = record::Recorder::open({.spool_path = path});
  ASSERT_TRUE(recorder);
  ASSERT_TRUE((*recorder)->start());
  for (int i = 0; i < 5'000; ++i) LANESCOPE_RECORD_FUNCTION("later");
  (*recorder)->stop();
  (*recorder)->close();
  const auto trace = format::read_spool(path);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(count_of(*trace, "later") + (*recorder)->stats().dropped_records, 5'000u);
  EXPECT_GT(count_of(*trace, "later"), 0u);
  EXPECT_TRUE((*recorder)->notes().empty());
}

TEST_F(SpoolLossTest, ACutFileEndsTheRecordingAndNothingElse) {
  for (int round = 0; round < 6; ++round)
    in_child([&] {
      auto recorder = start("cut" + std::to_string(round));
      Workers workers;
      EXPECT_TRUE(workers.go_on(20'000));
      ASSERT_EQ(truncate(recorder->spool_path().c_str(), 0), 0);
      EXPECT_TRUE(wait_until([] { return !record::is_recording(); }));
      EXPECT_TRUE(workers.go_on(20'000));
      recorder->stop();
      EXPECT_THAT(recorder->notes(), Contains(HasSubstr("was cut while it was written")));
      ASSERT_TRUE(recorder->start());  // still no recording
      EXPECT_FALSE(record::is_recording());
      EXPECT_TRUE(workers.go_on(1'000));
      recorder->close();
      workers.stop();
      EXPECT_EQ(fs::file_size(recorder->spool_path()), 0u) << "nobody made it longer again";
      expect_whole_recording((directory_ / ("next" + std::to_string(round))).string());
    });
}

TEST_F(SpoolLossTest, WhatIsInFrontOfTheCutIsRead) {
  in_child([&] {
    auto recorder = start("half");
    { LANESCOPE_RECORD_FUNCTION("first"); }
    Workers workers;
    EXPECT_TRUE(workers.go_on(100'000));
    const auto size = fs::file_size(recorder->spool_path());
    ASSERT_EQ(truncate(recorder->spool_path().c_str(), static_cast<off_t>(size / 2)), 0);
    EXPECT_TRUE(wait_until([] { return !record::is_recording(); }));
    workers.stop();
    recorder->stop();
    recorder->close();
    EXPECT_EQ(fs::file_size(recorder->spool_path()), size / 2);
    const Trace trace = read(*recorder);
    EXPECT_EQ(count_of(trace, "first"), 1u);
    EXPECT_GT(count_of(trace, "work"), 1'000u);
  });
}

TEST_F(SpoolLossTest, ACutRingMakesNoDumpAndEnds) {
  in_child([&] {
    auto recorder = start("ring", {.last_ns = 20'000'000, .quiet_dumps = true});
    Workers workers;
    EXPECT_TRUE(workers.go_on(20'000));
    recorder->request_dump("before");
    ASSERT_EQ(truncate(recorder->spool_path().c_str(), 4096), 0);
    recorder->request_dump("after");
    const auto dump = recorder->dump((directory_ / "copy").string());
    EXPECT_TRUE(wait_until([] { return !record::is_recording(); }));
    EXPECT_FALSE(recorder->dump((directory_ / "late").string()));
    EXPECT_TRUE(workers.go_on(20'000));
    recorder->stop();
    EXPECT_THAT(recorder->notes(), Contains(HasSubstr("was cut while it was written")));
    recorder->close();
  });
}

// A thread of a source, as CUPTI has them; it takes no signals.
TEST_F(SpoolLossTest, ASourcesThreadMeetsTheCut) {
  in_child([&] {
    auto recorder = start("source");
    std::atomic<bool> end{false};
    std::atomic<std::uint64_t> rounds{0};
    std::thread source([&] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      spool::OverheadRecord record{};
      record.kind = static_cast<std::uint8_t>(spool::ActivityKind::kOverhead);
      record.begin_tsc = record.end_tsc = 1;
      while (!end) {
        lanescope_source_write(&record, 1);
        ++rounds;
      }
    });
    EXPECT_TRUE(wait_until([&] { return rounds > 10'000; }));
    ASSERT_EQ(truncate(recorder->spool_path().c_str(), 0), 0);
    const std::uint64_t until = rounds + 20'000;
    EXPECT_TRUE(wait_until([&] { return rounds > until; }));
    recorder->stop();
    end = true;
    source.join();
    recorder->close();
    EXPECT_THAT(recorder->notes(), Contains(HasSubstr("was cut while it was written")));
  });
}

TEST_F(SpoolLossTest, ManyShortThreadsMeetTheCut) {
  in_child([&] {
    auto recorder = start("threads");
    std::atomic<bool> cut{false};
    std::thread cutter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(truncate(recorder->spool_path().c_str(), 0), 0);
      cut = true;
    });
    for (int round = 0; round < 20 || !cut; ++round) {
      std::vector<std::thread> threads;
      for (int t = 0; t < 16; ++t)
        threads.emplace_back([] {
          for (int i = 0; i < 100; ++i) LANESCOPE_RECORD_FUNCTION("work");
        });
      for (std::thread& thread : threads) thread.join();
    }
    cutter.join();
    recorder->stop();
    recorder->close();
    EXPECT_THAT(recorder->notes(), Contains(HasSubstr("was cut while it was written")));
  });
}

TEST_F(SpoolLossTest, ADeletedFileIsANoteAndHurtsNobody) {
  in_child([&] {
    auto recorder = start("deleted");
    Workers workers;
    EXPECT_TRUE(workers.go_on(1'000));
    ASSERT_EQ(unlink(recorder->spool_path().c_str()), 0);
    EXPECT_TRUE(workers.go_on(100'000));
    EXPECT_TRUE(record::is_recording());
    recorder->stop();
    EXPECT_THAT(recorder->notes(), Contains(HasSubstr("was deleted while it was written")));
    recorder->close();
    workers.stop();
    EXPECT_FALSE(fs::exists(recorder->spool_path()));
    expect_whole_recording((directory_ / "next.lspool").string());
  });
}

// The program's handler still gets the program's faults.
constinit std::atomic<int> own_faults{0};
void own_handler(int, siginfo_t* info, void*) {
  ++own_faults;
  mmap(info->si_addr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

TEST_F(SpoolLossTest, TheProgramsOwnFaultsGoToItsOwnHandler) {
  in_child([&] {
    struct sigaction own {};
    own.sa_sigaction = own_handler;
    own.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &own, nullptr);
    auto recorder = start("handlers");
    { LANESCOPE_RECORD_FUNCTION("first"); }
    const fs::path other = directory_ / "other";
    std::ofstream(other) << "x";
    FILE* file = fopen(other.c_str(), "r+");
    ASSERT_TRUE(file);
    void* at = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    fclose(file);
    static_cast<volatile char*>(at)[4096] = 1;  // after the end of the program's file
    EXPECT_EQ(own_faults, 1);
    EXPECT_TRUE(record::is_recording());
    ASSERT_EQ(truncate(recorder->spool_path().c_str(), 0), 0);
    for (int i = 0; i < 10'000; ++i) LANESCOPE_RECORD_FUNCTION("work");
    EXPECT_TRUE(wait_until([] { return !record::is_recording(); }));
    EXPECT_EQ(own_faults, 1);
    recorder->stop();
    recorder->close();
  });
}

}  // namespace
}  // namespace lanescope
