#include "lanescope/codec/cuda_call_names.h"

#include <gtest/gtest.h>

namespace lanescope::codec {
namespace {

// Pairs of number and name from traces that torch.profiler wrote on an H200.
TEST(CudaCallNamesTest, NumbersHaveTheNamesThatTorchShows) {
  EXPECT_EQ(cuda_runtime_call_name(211), "cudaLaunchKernel");
  EXPECT_EQ(cuda_runtime_call_name(430), "cudaLaunchKernelExC");
  EXPECT_EQ(cuda_runtime_call_name(41), "cudaMemcpyAsync");
  EXPECT_EQ(cuda_runtime_call_name(51), "cudaMemsetAsync");
  EXPECT_EQ(cuda_runtime_call_name(165), "cudaDeviceSynchronize");
  EXPECT_EQ(cuda_runtime_call_name(131), "cudaStreamSynchronize");
  EXPECT_EQ(cuda_runtime_call_name(311), "cudaGraphLaunch");
  EXPECT_EQ(cuda_runtime_call_name(317), "cudaStreamIsCapturing");
  EXPECT_EQ(cuda_driver_call_name(307), "cuLaunchKernel");
  EXPECT_EQ(cuda_driver_call_name(652), "cuLaunchKernelEx");
}

TEST(CudaCallNamesTest, VersionsAreCutAndStreamSuffixesStay) {
  EXPECT_EQ(cuda_driver_call_name(235), "cuCtxCreate");             // cuCtxCreate_v2
  EXPECT_EQ(cuda_driver_call_name(418), "cuMemcpyAsync_ptsz");      // no version
  EXPECT_EQ(cuda_driver_call_name(419), "cuMemcpyHtoAAsync_ptsz");  // cuMemcpyHtoAAsync_v2_ptsz
}

TEST(CudaCallNamesTest, NumbersWithoutACallHaveNoName) {
  EXPECT_EQ(cuda_runtime_call_name(0), "");
  EXPECT_EQ(cuda_driver_call_name(0), "");
  EXPECT_EQ(cuda_runtime_call_name(5000), "");
  EXPECT_EQ(cuda_driver_call_name(~std::uint32_t{0}), "");
}

}  // namespace
}  // namespace lanescope::codec
