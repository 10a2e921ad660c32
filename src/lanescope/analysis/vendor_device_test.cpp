#include "lanescope/analysis/vendor_device.h"

#include <gtest/gtest.h>

#include "lanescope/testing/sketch.h"

namespace lanescope::analysis {
namespace {

using testing::Sketch;

TEST(VendorDevice, RowsOfMtiaComputeCopyOrWait) {
  Sketch sketch;
  sketch.slice("mtia_ccp_events", "event_wait", 0, 400, {.tid = 101});
  sketch.slice("mtia_ccp_events", "merge", 400, 300, {.tid = 101});
  sketch.slice("mtia_ccp_events", "dma_request", 650, 150, {.tid = 102});
  const Trace trace = sketch.trace();
  const auto device = find_vendor_device(trace);
  ASSERT_TRUE(device);
  EXPECT_EQ(device->name, "MTIA");
  EXPECT_EQ(device->stream_count, 2u);
  const VendorWall wall = device->wall_of({0, 1'000});
  EXPECT_EQ(wall.compute_ns, 300);
  EXPECT_EQ(wall.exposed_copy_ns, 100);  // 700 to 800
  EXPECT_EQ(wall.exposed_communication_ns, 0);
  EXPECT_EQ(wall.idle_ns(), 600);
}

TEST(VendorDevice, ATraceOfOtherRowsHasNone) {
  Sketch sketch;
  sketch.slice("mtia_runtime", "merge", 0, 400);
  sketch.op("aten::mm", 0, 100);
  EXPECT_FALSE(find_vendor_device(sketch.trace()));
}

}  // namespace
}  // namespace lanescope::analysis
