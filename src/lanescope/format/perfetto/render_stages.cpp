#include "lanescope/format/perfetto/render_stages.h"

#include <array>
#include <optional>
#include <string>

#include "lanescope/codec/json_text.h"
#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/perfetto/fields.h"

namespace lanescope::format {
namespace {

using codec::WireReader;

// Adds the sizes of the grid or of a block: "[256, 1, 1]".
void add_sizes(std::string_view key, std::string_view message, TraceBuilder& builder) {
  std::array<std::uint64_t, 3> sizes{1, 1, 1};
  for (WireReader field(message); field.next();)
    if (field.number() >= 1 && field.number() <= 3) sizes[field.number() - 1] = field.integer();
  const std::string json = "[" + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ", " +
                           std::to_string(sizes[2]) + "]";
  builder.args().add_json(builder.intern(key), arg_key(key), builder.intern(json));
}

void add_extra(std::string_view message, TraceBuilder& builder) {
  std::string_view name, value;
  for (WireReader field(message); field.next();) {
    if (field.number() == 1) name = field.bytes();
    if (field.number() == 2) value = field.bytes();
  }
  const std::string key = codec::valid_utf8(name);
  builder.args().add_string(builder.intern(key), arg_key(key),
                            builder.intern(codec::valid_utf8(value)));
}

}  // namespace

void add_render_stage(std::string_view message, std::int64_t ns, const SequenceState& state,
                      TraceBuilder& builder, TrackSlots& slots, EventLog& log) {
  std::uint64_t queue = 0, duration = 0;
  std::int64_t gpu = 0;
  std::optional<GpuSpecification> hardware, stage;
  StringId name = kNone<StringId>;
  const auto specification = [&](std::uint64_t iid) -> std::optional<GpuSpecification> {
    const auto found = state.gpu_specifications.find(iid);
    if (found == state.gpu_specifications.end()) return std::nullopt;
    return found->second;
  };
  builder.args().begin();
  WireReader field(message);
  while (field.next()) {
    switch (field.number()) {
      case pftrace::kDuration:
        duration = field.integer();
        break;
      case pftrace::kGpuId:
        gpu = field.signed_integer();
        break;
      case pftrace::kQueueId:
        queue = field.integer();
        break;
      case pftrace::kQueueIid:
        queue = field.integer();
        hardware = specification(queue);
        break;
      case pftrace::kStageIid:
        stage = specification(field.integer());
        break;
      case pftrace::kStageName:
        name = builder.intern(codec::valid_utf8(field.bytes()));
        break;
      case pftrace::kStageNameIid:
        if (const StringId* const found = state.names.find(field.integer())) name = *found;
        break;
      case pftrace::kExtraData:
        add_extra(field.bytes(), builder);
        break;
      case pftrace::kLaunch:
        for (WireReader launch(field.bytes()); launch.next();) {
          if (launch.number() == pftrace::kGrid) add_sizes("grid", launch.bytes(), builder);
          if (launch.number() == pftrace::kWorkgroup) add_sizes("block", launch.bytes(), builder);
        }
        break;
      default:
        break;
    }
  }
  LoggedEvent event;
  event.type = LoggedEvent::kWhole;
  event.args = builder.args().end();
  if (field.is_damaged()) builder.stats().count(ImportIssue::kFieldLost);
  if (name == kNone<StringId> && stage) name = stage->name;
  event.name = name;
  event.category = builder.intern(stage && stage->is_compute ? "kernel" : "gpu_render_stage");
  event.ns = ns;
  event.dur_ns = duration > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(duration);
  log.add(slots.of_stream(gpu, queue, hardware ? hardware->name : kNone<StringId>), event);
}

}  // namespace lanescope::format
