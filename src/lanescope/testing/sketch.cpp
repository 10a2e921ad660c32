#include "lanescope/testing/sketch.h"

#include <utility>

#include "lanescope/model/profiler_steps.h"

namespace lanescope::testing {
namespace {

Scalar number(std::int64_t value) { return {false, value, kNone<StringId>}; }
constexpr std::int64_t kProcess = 100;

}  // namespace

void Sketch::field_int(std::string_view key, std::optional<std::int64_t> value) {
  if (value) builder_.args().add_int(builder_.intern(key), arg_key(key), *value);
}

void Sketch::field_text(std::string_view key, std::string_view value, bool json) {
  if (value.empty()) return;
  const StringId text = builder_.intern(value);
  if (json)
    builder_.args().add_json(builder_.intern(key), arg_key(key), text);
  else
    builder_.args().add_string(builder_.intern(key), arg_key(key), text);
}

Sketch& Sketch::slice(std::string_view category, std::string_view name, std::int64_t start_ns,
                      std::int64_t dur_ns, const Fields& fields) {
  const CategoryId id = builder_.category(category);
  const bool on_stream = is_on_stream(builder_.kind(id));
  const TrackId track = on_stream
                            ? builder_.stream_track(number(fields.device), number(fields.stream))
                            : builder_.thread_track(number(kProcess), number(fields.tid));
  builder_.args().begin();
  field_int("External id", fields.external_id);
  field_int("Sequence number", fields.sequence);
  field_int("Fwd thread id", fields.fwd_thread);
  if (on_stream) {
    field_int("device", fields.device);
    field_int("stream", fields.stream);
  }
  field_int("correlation", fields.correlation);
  field_int("bytes", fields.bytes);
  field_text("Input Dims", fields.input_dims, true);
  field_text("Input type", fields.input_types, true);
  field_text("Input Strides", fields.input_strides, true);
  field_text("Concrete Inputs", fields.concrete_inputs, true);
  field_text("grid", fields.grid, true);
  field_text("block", fields.block, true);
  field_int("registers per thread", fields.registers);
  field_int("shared memory", fields.shared_bytes);
  field_text("Call stack", fields.call_stack, false);
  field_text("Overload name", fields.overload, false);
  if (!fields.collective.empty()) {
    field_text("Collective name", fields.collective, false);
    field_int("In msg nelems", fields.elements);
    field_int("Out msg nelems", fields.elements);
    field_text("dtype", fields.dtype, false);
    field_text("Process Group Name", fields.group, false);
    field_int("Group size", fields.group_size);
    field_int("Seq", fields.collective_seq);
  }
  builder_.add_slice(track, id, builder_.intern(name), start_ns, dur_ns, builder_.args().end());
  return *this;
}

Sketch& Sketch::op(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                   const Fields& fields) {
  return slice("cpu_op", name, start_ns, dur_ns, fields);
}
Sketch& Sketch::annotation(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                           const Fields& fields) {
  return slice("user_annotation", name, start_ns, dur_ns, fields);
}
Sketch& Sketch::runtime(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                        const Fields& fields) {
  return slice("cuda_runtime", name, start_ns, dur_ns, fields);
}
Sketch& Sketch::driver(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                       const Fields& fields) {
  return slice("cuda_driver", name, start_ns, dur_ns, fields);
}
Sketch& Sketch::kernel(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                       const Fields& fields) {
  return slice("kernel", name, start_ns, dur_ns, fields);
}
Sketch& Sketch::gpu_annotation(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns,
                               const Fields& fields) {
  return slice("gpu_user_annotation", name, start_ns, dur_ns, fields);
}

Sketch& Sketch::overhead(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns) {
  const TrackId track = builder_.thread_track(number(-1), number(0));
  builder_.add_slice(track, builder_.category("overhead"), builder_.intern(name), start_ns, dur_ns,
                     kNone<ArgsId>);
  return *this;
}

Sketch& Sketch::memory(std::int64_t time_ns, std::int64_t bytes, int device_type,
                       std::int64_t tid) {
  builder_.args().begin();
  field_int("Device Type", device_type);
  field_int("Device Id", device_type == 0 ? -1 : 0);
  field_int("Bytes", bytes);
  const ArgsId args = builder_.args().end();
  builder_.add_instant(builder_.thread_track(number(kProcess), number(tid)),
                       builder_.category("cpu_instant_event"), builder_.intern("[memory]"), time_ns,
                       't', args);
  return *this;
}

Sketch& Sketch::memory_at(std::int64_t time_ns, std::int64_t bytes, const Allocator& allocator) {
  builder_.args().begin();
  field_int("Total Reserved", allocator.reserved);
  field_int("Total Allocated", allocator.allocated);
  field_int("Bytes", bytes);
  field_int("Device Id", 0);
  field_int("Device Type", 1);
  field_int("Addr", allocator.address);
  const ArgsId args = builder_.args().end();
  builder_.add_instant(builder_.thread_track(number(kProcess), number(allocator.tid)),
                       builder_.category("cpu_instant_event"), builder_.intern("[memory]"), time_ns,
                       't', args);
  return *this;
}

Sketch& Sketch::metadata(std::string_view key, std::string_view json) {
  builder_.add_metadata(key, json);
  return *this;
}

Trace Sketch::trace() {
  add_profiler_steps(builder_);
  return std::move(*std::move(builder_).finish());
}

}  // namespace lanescope::testing
