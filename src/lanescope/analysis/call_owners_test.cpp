// Files of several processes, whose correlation ids all count from 1: work is joined with a call of
// its own process. Calls are named after their process.
#include "lanescope/analysis/call_owners.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "lanescope/analysis/launch_links.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::analysis {
namespace {

Scalar number(std::int64_t value) { return {false, value, kNone<StringId>}; }

class Rows {
 public:
  Rows& call(std::int64_t pid, std::int64_t start, std::int64_t id, std::string_view name = "call",
             std::int64_t external = 0) {
    return row(builder_.thread_track(number(pid), number(1)), "cuda_runtime", name, start, 1, id,
               external);
  }
  Rows& work(std::int64_t device, std::int64_t start, std::int64_t id, std::int64_t external = 0,
             std::string_view category = "kernel") {
    return row(builder_.stream_track(number(device), number(7)), category, "work", start, 1, id,
               external);
  }
  Trace trace() { return std::move(*std::move(builder_).finish()); }

 private:
  Rows& row(TrackId track, std::string_view category, std::string_view name, std::int64_t start,
            std::int64_t dur, std::int64_t id, std::int64_t external) {
    builder_.args().begin();
    if (external != 0)
      builder_.args().add_int(builder_.intern("External id"), arg_key("External id"), external);
    builder_.args().add_int(builder_.intern("correlation"), arg_key("correlation"), id);
    builder_.add_slice(track, builder_.category(category), builder_.intern(name), start, dur,
                       builder_.args().end());
    return *this;
  }
  TraceBuilder builder_;
};

// "device.start<-pid.start" of all work in order, "-" without a launch.
std::string joins(const Trace& trace) {
  const LaunchLinks links = compute_launch_links(trace);
  std::ostringstream text;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::kStream) continue;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i) {
      const SliceId launch = links.launch_of[i];
      text << (text.tellp() > 0 ? " " : "") << *track.device << "." << trace.start_ns(SliceId{i})
           << "<-";
      if (launch == kNone<SliceId>)
        text << "-";
      else
        text << trace.process(trace.track(launch).process).pid.number << "."
             << trace.start_ns(launch);
    }
  }
  return text.str();
}

// The last call before the work of device 0 at 17 and 27 is that of 51. But 51 fits two pieces of
// it, 50 all three.
TEST(CallOwnersTest, ADeviceBelongsToTheProcessWhoseCallsFitMostOfItsWork) {
  Rows rows;
  for (const std::int64_t id : {1, 2, 3}) {
    rows.call(50, id * 10 - 10, id).call(51, id * 10 - 5, id);
    rows.work(0, id == 1 ? 3 : id * 10 - 3, id).work(1, id * 10 - 2, id);
  }
  EXPECT_EQ(joins(rows.trace()),
            "0.3<-50.0 0.17<-50.10 0.27<-50.20 1.8<-51.5 1.18<-51.15 1.28<-51.25");
}

// Each process fits all work of both devices, 51 with smaller lags. The rows of 51 and device 1
// come first, as if another file was appended to it.
TEST(CallOwnersTest, ProcessesThatFitAlikeAreTakenInOrderOfTheFile) {
  Rows rows;
  for (const std::int64_t id : {1, 2, 3}) rows.call(51, id * 10 - 5, id).work(1, id * 10 + 2, id);
  for (const std::int64_t id : {1, 2, 3}) rows.work(0, id * 10 - 3, id).call(50, id * 10 - 10, id);
  EXPECT_EQ(joins(rows.trace()),
            "1.12<-51.5 1.22<-51.15 1.32<-51.25 0.7<-50.0 0.17<-50.10 0.27<-50.20");
}

// One device, its process and another one without a device, which fits all of it too.
TEST(CallOwnersTest, OfProcessesThatFitAlikeTheNearerOneOwnsTheOnlyDevice) {
  Rows rows;
  for (const std::int64_t id : {1, 2, 3})
    rows.call(50, id * 10 - 10, id).call(51, id * 10 - 5, id).work(0, id * 10 - 3, id);
  EXPECT_EQ(joins(rows.trace()), "0.7<-51.5 0.17<-51.15 0.27<-51.25");
}

// Ids 1 to 10 are of 50; the call of id 11 was lost, and 51 happens to have one. Id 1 of 51 starts
// a copy and would be nearer.
TEST(CallOwnersTest, WorkWhoseOwnCallWasLostHasNoLaunch) {
  Rows rows;
  for (std::int64_t id = 1; id <= 10; ++id)
    rows.call(50, id * 10, id, "cudaLaunchKernel").work(0, id * 10 + 4, id);
  rows.call(51, 12, 1, "cudaMemcpyAsync").call(51, 111, 11, "cudaLaunchKernel").work(0, 114, 11);
  rows.work(1, 15, 1, 0, "gpu_memcpy").work(1, 116, 11);
  const std::string text = joins(rows.trace());
  EXPECT_EQ(text.substr(0, 9), "0.14<-50.");
  EXPECT_NE(text.find("0.114<-- 1.15<-51.12 1.116<-51.111"), std::string::npos) << text;
}

// The nearer call of 51 puts a function of the CPU into a stream: it starts no kernel.
TEST(CallOwnersTest, ACallThatStartsNoWorkOfTheGpuMatchesNone) {
  Rows rows;
  for (const std::int64_t id : {1, 2, 3}) {
    rows.call(50, id * 10, id, "cudaLaunchKernel").call(51, id * 10 + 2, id, "cudaLaunchHostFunc");
    rows.work(0, id * 10 + 4, id);
  }
  EXPECT_EQ(joins(rows.trace()), "0.14<-50.10 0.24<-50.20 0.34<-50.30");
}

// Both use device 0. Each id has two calls and two pieces of work: the first is the first's.
TEST(CallOwnersTest, ProcessesOnOneDeviceAreToldApartIdById) {
  Rows rows;
  for (const std::int64_t id : {1, 2, 3}) {
    rows.call(50, id * 10, id).call(51, id * 10 + 1, id);
    rows.work(0, id * 10 + 5, id).work(0, id * 10 + 7, id);
  }
  EXPECT_EQ(joins(rows.trace()),
            "0.15<-50.10 0.17<-51.11 0.25<-50.20 "
            "0.27<-51.21 0.35<-50.30 0.37<-51.31");
}

// The same, but the work of 51 overtakes that of 50, as the file tells: first come all rows of 51.
TEST(CallOwnersTest, FilesOneBehindTheOtherTellProcessesOnOneDeviceApart) {
  Rows rows;
  for (const std::int64_t id : {1, 2, 3}) rows.call(51, id * 10 + 1, id).work(0, id * 10 + 5, id);
  for (const std::int64_t id : {1, 2, 3}) rows.work(0, id * 10 + 7, id).call(50, id * 10, id);
  rows.call(51, 101, 4, "cudaGraphLaunch").work(0, 105, 4).work(0, 106, 4);
  rows.work(0, 107, 4).call(50, 100, 4, "cudaGraphLaunch").work(0, 108, 4);
  EXPECT_EQ(joins(rows.trace()),
            "0.15<-51.11 0.17<-50.10 0.25<-51.21 0.27<-50.20 0.35<-51.31 0.37<-50.30 "
            "0.105<-51.101 0.106<-51.101 0.107<-50.100 0.108<-50.100");
}

// The same, but the work of 51 overtakes that of 50, as the External ids tell.
TEST(CallOwnersTest, ExternalIdsThatAgreeTellProcessesOnOneDeviceApart) {
  Rows rows;
  for (const std::int64_t id : {1, 2, 3}) {
    rows.call(50, id * 10, id, "call", 500 + id).call(51, id * 10 + 1, id, "call", 600 + id);
    rows.work(0, id * 10 + 5, id, 600 + id).work(0, id * 10 + 7, id, 500 + id);
  }
  EXPECT_EQ(joins(rows.trace()),
            "0.15<-51.11 0.17<-50.10 0.25<-51.21 "
            "0.27<-50.20 0.35<-51.31 0.37<-50.30");
}

TEST(CallOwnersTest, AGraphOfEachProcessStartsManyPiecesOfItsDevice) {
  Rows rows;
  rows.call(50, 0, 5, "cudaGraphLaunch").call(51, 4, 5, "cudaGraphLaunch");
  rows.work(0, 2, 5).work(0, 10, 5).work(0, 20, 5).work(1, 8, 5).work(1, 12, 5).work(1, 22, 5);
  EXPECT_EQ(joins(rows.trace()), "0.2<-50.0 0.10<-50.0 0.20<-50.0 1.8<-51.4 1.12<-51.4 1.22<-51.4");
}

TEST(CallOwnersTest, ManyCallsOfOneIdAreJoinedAsInOneProcess) {
  Rows rows;
  for (std::int64_t pid = 1; pid <= 300; ++pid) rows.call(1000 + pid, pid, 1);
  rows.work(0, 200, 1);
  EXPECT_EQ(joins(rows.trace()), "0.200<-1200.200");
}

// Queues of random depth, ids that repeat in part, devices of their own: every piece
// finds its call.
TEST(CallOwnersTest, ProcessesWithADeviceEachFindTheirOwnCalls) {
  std::mt19937 random(7);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(limit));
  };
  for (int round = 0; round < 20; ++round) {
    Rows rows;
    std::ostringstream text;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      std::int64_t cpu = below(100), gpu = 0;
      for (std::int64_t id = 1 + below(3); id < 60; id += 1 + below(2)) {
        cpu += 5 + below(40);
        gpu = std::max(gpu, cpu + 3) + 1;
        rows.call(70 + rank, cpu, id, "cudaLaunchKernel").work(rank, gpu, id);
        text << (text.tellp() > 0 ? " " : "") << rank << "." << gpu << "<-" << 70 + rank << "."
             << cpu;
        gpu += below(60);
      }
    }
    EXPECT_EQ(joins(rows.trace()), text.str()) << round;
  }
}

}  // namespace
}  // namespace lanescope::analysis
