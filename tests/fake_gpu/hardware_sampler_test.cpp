// The sampling process with a made-up GPU: fake_hardware.cpp.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "lanescope/codec/counter_file.h"
#include "lanescope/record_cupti/hardware_sampler.h"

namespace {

namespace counters = lanescope::counters;
using ::testing::HasSubstr;
using ::testing::Not;

class Sampler {
 public:
  // `folder`: with a slash at its end; the process is shared.
  explicit Sampler(std::uint64_t most_bytes = 1u << 24, const std::string& folder = "") {
    char name[] = "/tmp/lanescope_hardware_XXXXXX";
    if (folder.empty()) close(mkstemp(name));
    path_ = folder.empty() ? name : folder;
    int input[2], output[2];
    if (pipe(input) != 0 || pipe(output) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) {
      dup2(input[0], 0);
      dup2(output[1], 1);
      for (const int end : {input[0], input[1], output[0], output[1]}) close(end);
      _exit(run(most_bytes));
    }
    close(input[0]);
    close(output[1]);
    input_ = input[1];
    for (char c = 0; read(output[0], &c, 1) == 1 && c != '\n';) said_ += c;
    close(output[0]);
  }
  ~Sampler() {
    end();
    unlink(path_.c_str());
  }
  const std::string& said() const { return said_; }

  counters::CounterFile file() const { return file(path_); }
  static counters::CounterFile file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    auto parsed = counters::parse_counter_file(bytes);
    return parsed ? std::move(parsed).value() : counters::CounterFile();
  }
  std::size_t size() const {
    std::ifstream file(path_, std::ios::binary | std::ios::ate);
    return static_cast<std::size_t>(file.tellg());
  }
  // Until the first device has so many samples.
  void wait_for(std::size_t samples) const { wait_for(samples, path_); }
  static void wait_for(std::size_t samples, const std::string& path) {
    while (true) {
      const counters::CounterFile now = file(path);
      if (!now.devices.empty() && now.devices[0].samples.size() >= samples) return;
      usleep(5000);
    }
  }
  int end() {
    if (child_ == 0) return 0;
    close(input_);
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    return WEXITSTATUS(status);
  }

 private:
  int run(std::uint64_t most_bytes) const {
    void* library = dlopen(LANESCOPE_CUPTI_SOURCE, RTLD_NOW);
    if (!library) return 99;
    const auto main = reinterpret_cast<decltype(&lanescope_hardware_main)>(
        dlsym(library, "lanescope_hardware_main"));
    if (!main) return 98;
    const LanescopeHardwareOptions options{.path = path_.c_str(),
                                           .devices = "",
                                           .interval_ns = 1'000'000,
                                           .slow_interval_ns = 20'000'000,
                                           .most_bytes = most_bytes};
    return main(&options);
  }

  std::string path_, said_;
  pid_t child_ = 0;
  int input_ = -1;
};

// NOLINTBEGIN(concurrency-mt-unsafe): one thread
class HardwareSamplerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("FAKE_PM_REFUSE");
    unsetenv("FAKE_PM_UNSUPPORTED");
    unsetenv("FAKE_PM_OVERFLOW_AT");
    unsetenv("FAKE_PM_METRICS");
    setenv("LANESCOPE_NVML_LIBRARY", std::getenv("LANESCOPE_CUPTI_LIBRARY"), 1);
  }
};

TEST_F(HardwareSamplerTest, SamplesAreWholeInOrderAndDescribed) {
  Sampler sampler;
  EXPECT_EQ(sampler.said(), "ready");
  sampler.wait_for(50);
  EXPECT_EQ(sampler.end(), 0);
  const counters::CounterFile file = sampler.file();
  EXPECT_EQ(file.bad_blocks, 0u);
  EXPECT_EQ(file.pid, static_cast<std::uint64_t>(getpid()));
  ASSERT_EQ(file.devices.size(), 1u);
  const counters::Device& device = file.devices[0];
  EXPECT_THAT(device.description, HasSubstr(R"("name": "Fake \"GPU\"", "interval_ns": 1000000)"));
  // Five fit into one pass: PCIe write is left out, NVLink is unknown.
  EXPECT_EQ(device.samples.width, 5u);
  EXPECT_THAT(device.description, HasSubstr("PCIe read"));
  EXPECT_THAT(device.description, Not(HasSubstr("PCIe write")));
  EXPECT_THAT(device.description, Not(HasSubstr("NVLink")));
  // 2000 MHz, two transfers a clock, 512 bytes each.
  EXPECT_THAT(device.description, HasSubstr("\"dram_peak_bytes_per_second\": 2048000000000"));
  // 32 GT/s in 128 of 130 bits, 16 lanes; 18 active links of 26,562 MB/s.
  EXPECT_THAT(device.description, HasSubstr("\"pcie_peak_bytes_per_second\": 63015384608"));
  EXPECT_THAT(device.description, HasSubstr("\"nvlink_peak_bytes_per_second\": 478116000000"));
  EXPECT_THAT(device.description, HasSubstr("\"highest_sm_clock_mhz\": 2000"));
  for (std::size_t i = 0; i < device.samples.size(); ++i) {
    EXPECT_EQ(device.samples.length_ns[i], 1'000'000u);  // the long first one is left out
    const float* values = &device.samples.values[i * 5];
    EXPECT_EQ(values[0], 50);         // SM active
    EXPECT_EQ(values[1], 2'000'000);  // bytes read
    EXPECT_EQ(values[2], 1'000'000);
    EXPECT_EQ(values[3], 25);
    if (i > 0) {
      EXPECT_EQ(device.samples.start_ns[i], device.samples.start_ns[i - 1] + 1'000'000);
    }
  }
  EXPECT_FALSE(device.anchors.empty());
  ASSERT_GT(device.slow.size(), 0u);
  const std::vector<float> slow(device.slow.values.begin(), device.slow.values.begin() + 6);
  EXPECT_EQ(slow, (std::vector<float>{1755, 2619, 312.5, 61, 1, 0}));
  EXPECT_EQ(device.losses.overflows, 0u);
  EXPECT_EQ(device.losses.gaps, 0u);
}

// An eighth of a sector a nanosecond: 4 bytes. 1500 MHz for 1 ms.
TEST_F(HardwareSamplerTest, SectorsOfL2AreBytesAndTheClockIsCounted) {
  setenv("FAKE_PM_METRICS", "8", 1);
  Sampler sampler;
  sampler.wait_for(5);
  sampler.end();
  const counters::CounterFile file = sampler.file();
  ASSERT_EQ(file.devices.size(), 1u);
  ASSERT_EQ(file.devices[0].samples.width, 8u);
  EXPECT_THAT(file.devices[0].description,
              HasSubstr(R"("name": "L2", "unit": "bytes", "metric": "lts__t_sectors_srcunit_tex)"));
  EXPECT_EQ(file.devices[0].samples.values[6], 4'000'000);
  EXPECT_THAT(
      file.devices[0].description,
      HasSubstr(
          R"("name": "SM clock counted", "unit": "cycles", "metric": "sm__cycles_elapsed.avg")"));
  EXPECT_EQ(file.devices[0].samples.values[7], 1'500'000);
}

TEST_F(HardwareSamplerTest, AnOverflowIsCountedAndSamplingGoesOn) {
  setenv("FAKE_PM_OVERFLOW_AT", "3", 1);
  Sampler sampler;
  sampler.wait_for(200);  // three polls of 40 ms give at most 130 or so
  sampler.end();
  const counters::CounterFile file = sampler.file();
  ASSERT_EQ(file.devices.size(), 1u);
  EXPECT_EQ(file.devices[0].losses.overflows, 1u);
  EXPECT_EQ(file.devices[0].losses.refused, 0u);
}

TEST_F(HardwareSamplerTest, WithoutPermissionClocksAndPowerRemain) {
  setenv("FAKE_PM_REFUSE", "35", 1);
  Sampler sampler;
  EXPECT_THAT(sampler.said(), HasSubstr("ready, without counters: GPU 0: this user may not read"));
  EXPECT_THAT(sampler.said(), HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
  sampler.end();
  const counters::CounterFile file = sampler.file();
  ASSERT_EQ(file.devices.size(), 1u);
  EXPECT_EQ(file.devices[0].samples.size(), 0u);
  EXPECT_GT(file.devices[0].slow.size(), 0u);
  EXPECT_THAT(file.devices[0].description, HasSubstr("\"problem\": \"this user may not"));
}

TEST_F(HardwareSamplerTest, AGpuThatCannotBeSampledSaysWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"1", "CUPTI does not say why (a MIG instance?); record without --hardware"},
      {"2", "cannot be sampled: it is older than Turing; record without --hardware"},
      {"3", "it is a virtual GPU, and its host does not allow profiling; record"}};
  for (const auto& [trouble, line] : cases) {
    setenv("FAKE_PM_UNSUPPORTED", trouble, 1);
    Sampler sampler;
    EXPECT_THAT(sampler.said(), HasSubstr("ready, without counters: GPU 0: this GPU's counters"));
    EXPECT_THAT(sampler.said(), HasSubstr(line));
  }
}

TEST_F(HardwareSamplerTest, WithNothingToSampleThereIsNoFile) {
  setenv("FAKE_PM_REFUSE", "26", 1);
  setenv("LANESCOPE_NVML_LIBRARY", "/no/such/library", 1);
  Sampler sampler;
  EXPECT_THAT(sampler.said(), HasSubstr("none: GPU 0: another profiler reads"));
  EXPECT_EQ(sampler.end(), 1);
}

TEST_F(HardwareSamplerTest, TheFileStopsAtItsLimitAndSaysSo) {
  Sampler sampler(2000);  // the description and few samples
  std::size_t last = 0;
  while (last == 0 || sampler.size() != last) {  // until it grows no more
    last = sampler.size();
    usleep(200'000);
  }
  sampler.end();
  const counters::CounterFile file = sampler.file();
  ASSERT_EQ(file.devices.size(), 1u);
  EXPECT_EQ(file.bad_blocks, 0u);
  EXPECT_EQ(file.devices[0].losses.size_limit_reached, 1u);
}

TEST_F(HardwareSamplerTest, ASharedProcessWritesAFileForEachGpuAndRemovesTheFolder) {
  char name[] = "/tmp/lanescope_shared_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string folder = std::string(name) + "/", mine = std::string(name) + ".mine";
  std::ofstream(folder + "lock") << "";
  Sampler sampler(1u << 24, folder);
  EXPECT_EQ(sampler.said(), "ready");
  ASSERT_EQ(link((folder + "0.counters").c_str(), mine.c_str()), 0);
  sampler.wait_for(50, mine);
  EXPECT_EQ(sampler.end(), 0);
  EXPECT_NE(access(name, F_OK), 0);
  EXPECT_NE(access((std::string(name) + ".ended").c_str(), F_OK), 0);
  const counters::CounterFile file = Sampler::file(mine);
  unlink(mine.c_str());
  ASSERT_EQ(file.devices.size(), 1u);
  EXPECT_EQ(file.bad_blocks, 0u);
  EXPECT_GE(file.devices[0].samples.size(), 50u);
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace
