// Ranges in your own code: from the constructor to the end of the scope, on one thread.
#pragma once
#include <string_view>

#include "lanescope/record/cost_meter.h"
#include "lanescope/record/thread_writer.h"

namespace lanescope {

// Any name. Costs one hash of its bytes while recording, one load otherwise.
class RecordFunction {
 public:
  explicit RecordFunction(std::string_view name) noexcept {
    if (!record::is_recording()) return;
    const record::RangeCall call;
    if (call.is_paused() && !record::is_step_name(name)) [[unlikely]] {
      record::count_left_out_range();
      return;
    }
    record::RangeInfo info;
    info.name = record::intern_text(name.data(), name.size());
    token_ = record::begin_range(info);
  }
  // `name_id` from record::intern_stable() or lanescope_intern().
  struct Interned {
    std::uint32_t id;
  };
  explicit RecordFunction(Interned name) noexcept {
    const record::RangeCall call;
    if (call.is_paused()) [[unlikely]] {
      record::count_left_out_range();
      return;
    }
    record::RangeInfo info;
    info.name = name.id;
    token_ = record::begin_range(info);
  }
  ~RecordFunction() { end(); }
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;
  // Ends the range early, on the same thread; the destructor then does nothing.
  void end() noexcept {
    if (token_.sequence == 0) return;
    const record::RangeCall call;
    record::end_range(token_);
    token_ = {};
  }

 private:
  record::RangeToken token_;
};

}  // namespace lanescope

#define LANESCOPE_RANGE_CONCAT_INNER(a, b) a##b
#define LANESCOPE_RANGE_CONCAT(a, b) LANESCOPE_RANGE_CONCAT_INNER(a, b)
// LANESCOPE_RECORD_FUNCTION("name"); a range to the end of the scope. The name is a literal, looked
// up once per place.
#define LANESCOPE_RECORD_FUNCTION(literal)                                                      \
  const ::lanescope::RecordFunction LANESCOPE_RANGE_CONCAT(lanescope_range_,                    \
                                                           __LINE__)([]() noexcept {            \
    static const std::uint32_t id = lanescope_intern("" literal, sizeof(literal) - 1, nullptr); \
    return ::lanescope::RecordFunction::Interned{id};                                           \
  }())
