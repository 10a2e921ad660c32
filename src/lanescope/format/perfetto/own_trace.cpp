#include "lanescope/format/perfetto/own_trace.h"

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/lost_entry.h"
#include "lanescope/format/perfetto/fields.h"

namespace lanescope::format {
namespace {

using codec::WireReader;

void read_metadata(std::string_view message, TraceBuilder& builder) {
  std::string_view key, value;
  for (WireReader field(message); field.next();) {
    if (field.number() == pftrace::kOwnKey) key = field.bytes();
    if (field.number() == pftrace::kOwnValue) value = field.bytes();
  }
  if (!codec::is_strict_json(value))
    builder.stats().count(ImportIssue::kMetadataLost);
  else if (!take_lost_entry(key, value, &builder.stats()))
    builder.add_metadata(codec::valid_utf8(key), value);
}

Flow kind_of(std::string_view message, TraceBuilder& builder) {
  Flow kind;
  kind.category = builder.no_category();
  for (WireReader field(message); field.next();) {
    if (field.number() == pftrace::kOwnFlowName)
      kind.name = builder.intern(codec::valid_utf8(field.bytes()));
    if (field.number() == pftrace::kOwnFlowCategory)
      kind.category = builder.category(codec::valid_utf8(field.bytes()));
    if (field.number() == pftrace::kOwnFlowBinds) kind.binds_enclosing = field.integer() != 0;
  }
  return kind;
}

}  // namespace

std::optional<char> OwnTrace::event_scope(std::string_view message) {
  for (WireReader field(message); field.next();)
    if (field.number() == pftrace::kOwnEventScope &&
        (field.integer() == 'p' || field.integer() == 'g'))
      return static_cast<char>(field.integer());
  return std::nullopt;
}

void OwnTrace::read(std::string_view message, TraceBuilder& builder) {
  for (WireReader field(message); field.next();) {
    switch (field.number()) {
      case pftrace::kOwnBaseTime:
        is_there_ = true;
        builder.set_base_time_ns(field.signed_integer());
        break;
      case pftrace::kOwnShift:
        shift_ = field.signed_integer();
        break;
      case pftrace::kOwnMetadata:
        read_metadata(field.bytes(), builder);
        break;
      case pftrace::kOwnMetadataEvent:
        if (codec::is_strict_json(field.bytes()))
          builder.add_metadata_event(builder.intern(field.bytes()));
        else
          builder.stats().count(ImportIssue::kMetadataLost);
        break;
      case pftrace::kOwnFlowKind:
        kinds_.push_back(kind_of(field.bytes(), builder));
        break;
      case pftrace::kOwnFlow:
        read_flow(field.bytes(), builder);
        break;
      default:
        break;
    }
  }
}

void OwnTrace::read_flow(std::string_view message, TraceBuilder& builder) {
  OwnFlow own;
  std::uint64_t kind = 0;
  Scalar id;
  for (WireReader field(message); field.next();) {
    switch (field.number()) {
      case pftrace::kOwnFromTrack:
        own.from_uuid = field.integer();
        break;
      case pftrace::kOwnFromNs:
        own.flow.from_ns = field.signed_integer();
        break;
      case pftrace::kOwnToTrack:
        own.to_uuid = field.integer();
        break;
      case pftrace::kOwnToNs:
        own.flow.to_ns = field.signed_integer();
        break;
      case pftrace::kOwnFlowKindIndex:
        kind = field.integer();
        break;
      case pftrace::kOwnFlowId:
        id = {false, field.signed_integer(), kNone<StringId>};
        break;
      case pftrace::kOwnFlowIdText:
        id = {true, 0, builder.intern(codec::valid_utf8(field.bytes()))};
        break;
      default:
        break;
    }
  }
  own.flow.set_id(id);
  if (kind < kinds_.size()) {
    own.flow.name = kinds_[kind].name;
    own.flow.category = kinds_[kind].category;
    own.flow.binds_enclosing = kinds_[kind].binds_enclosing;
  }
  flows_.push_back(own);
}

Flow OwnTrace::flow_of(std::uint64_t wire_id, TraceBuilder& builder) const {
  Flow flow;
  flow.category = builder.no_category();
  flow.id_value = static_cast<std::int64_t>(wire_id);
  const std::uint64_t kind = wire_id / pftrace::kFlowKindFactor;
  if (is_there_ && kind >= 1 && kind <= kinds_.size()) {
    flow = kinds_[static_cast<std::size_t>(kind) - 1];
    flow.id_value = static_cast<std::int64_t>(wire_id % pftrace::kFlowKindFactor);
  } else {
    flow.name = builder.intern("flow");
    flow.category = builder.category("flow");
  }
  return flow;
}

}  // namespace lanescope::format
