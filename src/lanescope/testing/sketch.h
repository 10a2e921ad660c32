// Small traces drawn by hand for tests: one line per event, times in nanoseconds, the fields that
// Kineto would write.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/model/trace_builder.h"

namespace lanescope::testing {

// What an event may carry; whatever is not set is not in its args.
struct Fields {
  std::int64_t tid = 100;               // CPU rows; the process is 100
  std::int64_t device = 0, stream = 7;  // device rows
  std::optional<std::int64_t> external_id = {}, correlation = {}, sequence = {}, fwd_thread = {},
                              bytes = {};
  std::string input_dims = {}, input_types = {}, call_stack = {}, overload = {};
  // For a collective: its name, type and number of elements, process group, and number
  // in the group.
  std::string collective = {}, dtype = "Float", group = "0";
  std::optional<std::int64_t> elements = {}, collective_seq = {};
  // For operators (JSON) and kernels (JSON, counts per thread and per block).
  std::string input_strides = {}, concrete_inputs = {}, grid = {}, block = {};
  std::optional<std::int64_t> registers = {}, shared_bytes = {};
  std::optional<std::int64_t> group_size = {};  // of a collective
};

// Events are added in file order. Not thread-safe. trace() may be called once.
class Sketch {
 public:
  Sketch& op(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
             const Fields& fields = {});
  Sketch& annotation(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                     const Fields& fields = {});
  Sketch& runtime(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                  const Fields& fields = {});
  Sketch& driver(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                 const Fields& fields = {});
  Sketch& kernel(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                 const Fields& fields = {});
  Sketch& gpu_annotation(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                         const Fields& fields = {});
  Sketch& overhead(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns);
  // A `[memory]` instant; bytes < 0 is a free. device_type: 0 CPU, 1 CUDA.
  Sketch& memory(std::int64_t time_ns, std::int64_t bytes, int device_type = 0,
                 std::int64_t tid = 100);
  // The same on CUDA device 0, with its address and the allocator's totals after it.
  struct Allocator {
    std::int64_t address = 0, allocated = 0, reserved = 0;
    std::int64_t tid = 100;
  };
  Sketch& memory_at(std::int64_t time_ns, std::int64_t bytes, const Allocator& allocator);
  Sketch& metadata(std::string_view key, std::string_view json);
  // Any other slice.
  Sketch& slice(std::string_view category, std::string_view name, std::int64_t start_ns,
                std::int64_t dur_ns, const Fields& fields = {});

  TraceBuilder& builder() { return builder_; }
  Trace trace();

 private:
  void field_int(std::string_view key, std::optional<std::int64_t> value);
  void field_text(std::string_view key, std::string_view value, bool json);
  TraceBuilder builder_;
};

}  // namespace lanescope::testing
