// The range of a step, as the trace and torch's other listeners see it.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "lanescope/record/range.h"
#include "lanescope/record/shared_range.h"

namespace lanescope {

// ProfilerStep#N. The thread that opened it ends it by the token, another thread by the handle. Other
// listeners of torch see it, too.
class StepRange {
 public:
  void open(std::int64_t number) noexcept {
    const std::string name = fmt::format("ProfilerStep#{}", number);
    bool recorded = false;
    shared_ = record::open_shared_range(name, {}, &recorded);
    if (recorded) return;
    record::RangeInfo info;
    info.name = record::intern_text(name.data(), name.size());
    // Bit 63 makes the handle larger than any address, so it differs from all handles of the torch
    // observer. The address of this object makes it differ from handles of other profilers.
    info.handle = handle_ = (std::uint64_t{1} << 63) |
                            reinterpret_cast<std::uintptr_t>(this) << 16 |
                            (static_cast<std::uint64_t>(number) & 0xffff);
    token_ = record::begin_range(info);
    writer_ = lanescope_thread_writer;
  }
  void close() noexcept {
    record::close_shared_range(std::exchange(shared_, nullptr));
    if (token_.sequence == 0) return;
    if (lanescope_thread_writer == writer_)
      record::end_range(token_);
    else
      record::end_nested(handle_);
    token_ = {};
  }

 private:
  record::RangeToken token_;
  LanescopeSharedRange* shared_ = nullptr;
  std::uint64_t handle_ = 0;
  const LanescopeWriter* writer_ = nullptr;
};

}  // namespace lanescope
