// What the recordings in this folder hold: record_spool cpu|gpu|ring FILE. ABOUT.md says with which
// versions of lanescope each was made; every one of them compiles this program. With gpu or ring it
// is compiled with -DWITH_FAKE_GPU and linked with the fake libcupti of tests/fake_gpu.
#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "lanescope/profiler.h"
#include "lanescope/record/range.h"
#ifdef WITH_FAKE_GPU
extern "C" {
void fake_gpu_launch(const char* kernel, std::uint32_t correlation);
void fake_gpu_copy_and_wait(std::uint64_t bytes, std::uint32_t correlation);
}
#endif

namespace {

using lanescope::RecordFunction;

// work 0, work 1 and work 2 with two inner ranges each; two ranges on another thread; a
// name that JSON must escape.
void do_cpu_work() {
  for (int i = 0; i < 3; ++i) {
    const RecordFunction work("work " + std::to_string(i));
    { LANESCOPE_RECORD_FUNCTION("inner"); }
    { LANESCOPE_RECORD_FUNCTION("inner"); }
  }
  std::thread([] {
    pthread_setname_np(pthread_self(), "helper");
    { LANESCOPE_RECORD_FUNCTION("helper work"); }
    { LANESCOPE_RECORD_FUNCTION("helper work"); }
  }).join();
  { const RecordFunction odd("\"odd\" \\ name \xc3\xa9"); }
}

#ifdef WITH_FAKE_GPU
// Launches 1 to 4 of kernel gemm inside the range launch, then a copy of 4096 bytes and its wait.
void do_gpu_work() {
  for (std::uint32_t i = 1; i <= 4; ++i) {
    LANESCOPE_RECORD_FUNCTION("launch");
    fake_gpu_launch("gemm", i);
  }
  fake_gpu_copy_and_wait(4096, 5);
}

// outer is open all the time; its chunk is given back long before it ends. 6,000 ranges tick, a
// pause longer than the ring reaches, 100 ranges tock.
void do_ring_work() {
  const RecordFunction outer("outer");
  for (int i = 0; i < 6000; ++i) {
    LANESCOPE_RECORD_FUNCTION("tick");
  }
  std::this_thread::sleep_for(std::chrono::seconds(4));
  for (int i = 0; i < 100; ++i) {
    LANESCOPE_RECORD_FUNCTION("tock");
  }
}
#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string what = argv[1];
  lanescope::ProfilerOptions options;
  options.activities = {lanescope::ProfilerActivity::kCpu};
  if (what == "gpu") options.activities.push_back(lanescope::ProfilerActivity::kCuda);
  options.spool_path = argv[2];
#ifdef WITH_FAKE_GPU
  if (what == "ring") options.last_ns = 2'000'000'000;
#endif
  lanescope::Profiler profiler(options);
  if (!profiler.start()) return 1;
  static_cast<void>(profiler.add_metadata("program", "record_spool " + what));
#ifdef WITH_FAKE_GPU
  if (what == "ring") do_ring_work();
  if (what == "gpu") do_gpu_work();
#endif
  if (what != "ring") do_cpu_work();
  profiler.stop();
  for (const std::string& warning : profiler.warnings()) std::puts(warning.c_str());
  return 0;
}
