// A job divided among workers is the job of one worker. The workers are threads here; under MPI they are
// processes (tests/end_to_end/test_ranks_mpi.py).
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "lanescope/ranks/communicator.h"
#include "lanescope/ranks/job_helpers_test.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {
namespace {

// What all workers put in for each other.
class Room {
 public:
  explicit Room(std::uint32_t workers)
      : messages(workers, std::vector<std::string>(workers)), all(workers) {}
  std::vector<std::vector<std::string>> messages;  // [to][from]
  std::barrier<> all;
};

class ThreadWorker final : public Communicator {
 public:
  ThreadWorker(Room& room, std::uint32_t worker) : room_(room), worker_(worker) {}
  std::uint32_t worker() const override { return worker_; }
  std::uint32_t workers() const override {
    return static_cast<std::uint32_t>(room_.messages.size());
  }
  std::vector<std::string> exchange(std::vector<std::string> to) override {
    for (std::size_t i = 0; i < to.size(); ++i) room_.messages[i][worker_] = std::move(to[i]);
    room_.all.arrive_and_wait();
    std::vector<std::string> from = std::move(room_.messages[worker_]);
    room_.messages[worker_].assign(workers(), {});
    room_.all.arrive_and_wait();
    return from;
  }

 private:
  Room& room_;
  std::uint32_t worker_;
};

// The files go to the workers in turn, as dynamic hand-out might do it.
Result<Job> job_of_workers(const std::vector<RankFile>& files, std::uint32_t workers) {
  Room room(workers);
  std::vector<std::optional<Result<Job>>> jobs(workers);
  std::vector<std::thread> threads;
  for (std::uint32_t worker = 0; worker < workers; ++worker)
    threads.emplace_back([&, worker] {
      std::vector<PlacedFile> own;
      for (std::size_t i = 0; i < files.size(); ++i)
        if (i * 7 % workers == worker) own.push_back({i, files[i]});
      ThreadWorker communicator(room, worker);
      jobs[worker] = build_job(std::move(own), communicator);
    });
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t worker = 1; worker < workers; ++worker) {
    EXPECT_EQ(jobs[worker]->has_value(), jobs[0]->has_value());
    if (jobs[worker]->has_value()) {
      EXPECT_TRUE((*jobs[worker])->ranks.empty());
    }
  }
  return *std::move(jobs[0]);
}

// Six ranks, clocks up to 70 ms apart. Rank 4 is 300 us late in each step of 1000 us; rank 2 disagrees
// about the second collective of step 3; rank 5 lacks the last one.
std::vector<RankFile> planted_job(bool with_sequences) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 6; ++number) {
    DrawnRank rank(number, 6, number * 14'000);
    for (std::int64_t i = 0; i < 5; ++i) {
      const std::int64_t at = i * 1500, late = number == 4 ? 300 : number * 3;
      rank.step(i, at, 500 + late, 0, 500 - late);
      rank.call(at + 400 + late, at + 800, 100, 1000, with_sequences ? 2 * i : -1);
      if (number == 5 && i == 4) continue;
      rank.call(at + 850 + late, at + 1200 + number, 150, number == 2 && i == 3 ? 7 : 2000,
                with_sequences ? 2 * i + 1 : -1);
    }
    files.push_back(rank.file());
  }
  files.push_back({"broken.json", Error{Errc::kCorruptInput, "expected a trace"}});
  return files;
}

void expect_equal(const Job& one, const Job& many) {
  ASSERT_EQ(one.ranks.size(), many.ranks.size());
  EXPECT_EQ(one.numbers, many.numbers);
  EXPECT_EQ(one.last_arrivals, many.last_arrivals);
  ASSERT_EQ(one.remarks.size(), many.remarks.size());
  for (std::size_t i = 0; i < one.remarks.size(); ++i)
    EXPECT_EQ(one.remarks[i].text, many.remarks[i].text);
  for (std::size_t i = 0; i < one.ranks.size(); ++i) {
    EXPECT_EQ(one.ranks[i].file, many.ranks[i].file);
    EXPECT_EQ(one.ranks[i].totals.calls, many.ranks[i].totals.calls);
    EXPECT_EQ(one.clocks[i].offset_ns, many.clocks[i].offset_ns);
    EXPECT_EQ(one.clocks[i].error_ns, many.clocks[i].error_ns);
    EXPECT_EQ(one.clocks[i].lowest_ns, many.clocks[i].lowest_ns);
    EXPECT_EQ(one.times[i].exposed_wait_ns, many.times[i].exposed_wait_ns);
    EXPECT_EQ(one.times[i].wait_ns, many.times[i].wait_ns);
  }
  ASSERT_EQ(one.steps.size(), many.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i)
    EXPECT_EQ(one.steps[i].late_ns, many.steps[i].late_ns);
  ASSERT_EQ(one.rates.size(), many.rates.size());
  for (std::size_t i = 0; i < one.rates.size(); ++i) {
    EXPECT_EQ(one.rates[i].kind, many.rates[i].kind);
    EXPECT_EQ(one.rates[i].together_ns, many.rates[i].together_ns);
  }
  ASSERT_EQ(one.matching.mismatches.size(), many.matching.mismatches.size());
  EXPECT_EQ(one.matching.mismatch_count, many.matching.mismatch_count);
  for (std::size_t i = 0; i < one.matching.groups.size(); ++i)
    EXPECT_EQ(one.matching.groups[i].matched, many.matching.groups[i].matched);
  ASSERT_EQ(one.critical.size(), many.critical.size());
  for (std::size_t i = 0; i < one.critical.size(); ++i)
    EXPECT_EQ(one.critical[i].exposed_wait_ns, many.critical[i].exposed_wait_ns);
}

TEST(JobWorkersTest, AnyNumberOfWorkersGivesTheJobOfOne) {
  for (const bool with_sequences : {false, true}) {
    const std::vector<RankFile> files = planted_job(with_sequences);
    const Result<Job> one = build_job(files);
    ASSERT_TRUE(one);
    EXPECT_EQ(one->matching.mismatch_count, 1u);
    EXPECT_EQ(judge_job(*one).ranks, std::vector<std::int64_t>{4});
    for (const std::uint32_t workers : {2u, 3u, 8u, 13u}) {
      const Result<Job> many = job_of_workers(files, workers);
      ASSERT_TRUE(many);
      expect_equal(*one, *many);
    }
  }
}

// Sends and receives of three stages, each pair in a group of its own.
TEST(JobWorkersTest, StageWaitsAreThoseOfOneWorker) {
  std::vector<RankFile> files;
  for (std::int64_t number = 0; number < 3; ++number) {
    DrawnRank rank(number, 3, number * 9000);
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t at = i * 1000 + number * 50;
      rank.step(i, i * 1000, 600, 0, 400);
      if (number > 0)
        rank.in_group("pair" + std::to_string(number - 1), 2)
            .call(at, at + 100 + 20 * number, 100, 8, -1, "recv");
      if (number < 2)
        rank.in_group("pair" + std::to_string(number), 2)
            .call(at + 300, at + 310, 10, 8, -1, "send");
    }
    files.push_back(rank.file());
  }
  const Result<Job> one = build_job(files);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->times[1].stage.first_ns,
            90'000);  // 120 us, of which 10 are the transfer; 100 exposed
  EXPECT_EQ(one->times[2].stage.receives, 1u);
  for (const std::uint32_t workers : {2u, 3u, 5u}) {
    const Result<Job> many = job_of_workers(files, workers);
    ASSERT_TRUE(many);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(one->times[i].stage.total_ns(), many->times[i].stage.total_ns());
      EXPECT_EQ(one->times[i].stage.receives, many->times[i].stage.receives);
    }
    EXPECT_EQ(judge_job(*one).kind, judge_job(*many).kind);
  }
}

TEST(JobWorkersTest, AllWorkersGetTheErrorOfAJobWithoutFiles) {
  const std::vector<RankFile> files{{"a.json", Error{Errc::kIo, "cannot be read"}}};
  const Result<Job> job = job_of_workers(files, 3);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().message, "cannot be read");
}

// Worked out by hand. In the second collective of a step rank 4 comes at 1150, rank 0 at 850: it waits 300
// of its 350 us. 150 us of them are exposed, of which the transfer's 50 count first: 100 us of the wait are
// exposed. Ranks 1, 2, 3 and 5 come 3, 6, 9 and 15 us later and leave 1 to 5 us later: 99, 98, 97 and 95 us.
// Sum: 489 us. Nobody leaves at the same moment, so the clocks are off by some microseconds.
TEST(JobWorkersTest, TheCollectiveWithMostExposedWaitIsNamed) {
  const Result<Job> job = build_job(planted_job(false));
  ASSERT_TRUE(job);
  ASSERT_FALSE(job->critical.empty());
  const JobCollective& first = job->critical.front();
  EXPECT_EQ(first.last_rank, 4u);
  EXPECT_EQ(first.ranks, 6u);
  EXPECT_NEAR(static_cast<double>(first.spread_ns), 300e3, 5e3);
  EXPECT_NEAR(static_cast<double>(first.exposed_wait_ns), 489e3, 20e3);
}

}  // namespace
}  // namespace lanescope::ranks
