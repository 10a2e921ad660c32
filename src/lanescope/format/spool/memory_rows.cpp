#include "lanescope/format/spool/memory_rows.h"

namespace lanescope::format {

void add_memory_rows(std::span<const MemoryEvent> events, std::int64_t first_number,
                     TraceBuilder& builder) {
  const StringId memory = builder.intern("[memory]"),
                 out_of_memory = builder.intern("[OutOfMemory]");
  const StringId finished = builder.intern("finished");
  const CategoryId instant = builder.category("cpu_instant_event");
  ArgsBuilder& args = builder.args();
  const auto add = [&](const char* key, std::int64_t value) {
    args.add_int(builder.intern(key), arg_key(key), value);
  };
  for (const MemoryEvent& event : events) {
    const spool::MemoryRecord& record = event.memory;
    const bool is_out_of_memory = record.kind == spool::RecordKind::kOutOfMemory;
    args.begin();
    add("Total Reserved", static_cast<std::int64_t>(record.total_reserved()));
    add("Total Allocated", static_cast<std::int64_t>(record.total_allocated));
    add("Bytes", record.bytes);
    add("Device Id", record.device_index);
    add("Device Type", record.device_type);
    if (!is_out_of_memory) {
      args.add_uint(builder.intern("Addr"), ArgKey::kAddr, record.address);
      args.add(finished, arg_key("finished"), ArgType::kFalse);
    }
    add("Ev Idx", first_number + event.number);
    const ArgsId id = args.end();
    builder.add_instant(event.track, instant, is_out_of_memory ? out_of_memory : memory,
                        event.time_ns, 't', id);
  }
}

}  // namespace lanescope::format
