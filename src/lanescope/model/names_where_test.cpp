#include "lanescope/model/names_where.h"

#include <gtest/gtest.h>

#include <string_view>

#include "lanescope/model/trace_builder.h"

namespace lanescope {
namespace {
Scalar number_of(std::int64_t value) { return {false, value, kNone<StringId>}; }

TEST(NamesWhere, AsksOnceForEachName) {
  TraceBuilder builder;
  const TrackId thread = builder.thread_track(number_of(1), number_of(1));
  const CategoryId op = builder.category("cpu_op");
  for (std::int64_t i = 0; i < 6; ++i)
    builder.add_slice(thread, op, builder.intern(i % 2 == 0 ? "aten::add" : "aten::mm"), i * 10, 5,
                      kNone<ArgsId>);
  const auto trace = std::move(builder).finish();
  ASSERT_TRUE(trace);
  int asked = 0;
  NamesWhere is_add(*trace, [&](std::string_view name) {
    ++asked;
    return name == "aten::add";
  });
  for (std::uint32_t i = 0; i < trace->slices().size(); ++i)
    EXPECT_EQ(is_add(SliceId{i}), trace->name(SliceId{i}) == "aten::add");
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace lanescope
