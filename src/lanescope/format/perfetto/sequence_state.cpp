#include "lanescope/format/perfetto/sequence_state.h"

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"

namespace lanescope::format {
namespace {

using codec::WireReader;

StringId clean_text(std::string_view text, TraceBuilder& builder) {
  bool replaced = false;
  const std::string clean = codec::valid_utf8(text, &replaced);
  if (replaced) builder.stats().count(ImportIssue::kInvalidUtf8);
  return builder.intern(clean);
}

struct InternedText {
  std::uint64_t iid = 0;
  StringId text{};
};

InternedText interned_text_of(std::string_view message, TraceBuilder& builder) {
  std::uint64_t iid = 0;
  std::string_view text;
  for (WireReader field(message); field.next();) {
    if (field.number() == pftrace::kIid) iid = field.integer();
    if (field.number() == pftrace::kText) text = field.bytes();
  }
  return {iid, clean_text(text, builder)};
}

void intern_text(std::string_view message, TextByIid& texts, TraceBuilder& builder) {
  const auto [iid, text] = interned_text_of(message, builder);
  texts.set(iid, text);
}

void intern_annotation_name(std::string_view message, SequenceState& state, TraceBuilder& builder) {
  const auto [iid, text] = interned_text_of(message, builder);
  state.annotation_names.set(iid, {text, arg_key(builder.text(text))});
}

// A list of lanescope is a text to other readers.
void intern_annotation_text(std::string_view message, SequenceState& state, TraceBuilder& builder) {
  bool is_list = false;
  for (WireReader field(message); field.next();)
    if (field.number() == pftrace::kOwnField) is_list = field.integer() == pftrace::kOwnIsList;
  const auto [iid, text] = interned_text_of(message, builder);
  state.texts.set(iid, text);
  is_list &= builder.text(text).starts_with('[') && codec::is_strict_json(builder.text(text));
  if (is_list)
    state.lists.set(iid, text);
  else
    state.lists.erase(iid);
}

void intern_specification(std::string_view message, SequenceState& state, TraceBuilder& builder) {
  std::uint64_t iid = 0;
  GpuSpecification specification;
  for (WireReader field(message); field.next();) {
    if (field.number() == pftrace::kIid) iid = field.integer();
    if (field.number() == pftrace::kSpecName)
      specification.name = clean_text(field.bytes(), builder);
    if (field.number() == pftrace::kSpecCategory)
      specification.is_compute = field.integer() == pftrace::kCompute;
  }
  state.gpu_specifications[iid] = specification;
}

}  // namespace

void intern(std::string_view message, SequenceState& state, TraceBuilder& builder) {
  for (WireReader field(message); field.next();) {
    switch (field.number()) {
      case pftrace::kEventCategories:
        intern_text(field.bytes(), state.categories, builder);
        break;
      case pftrace::kEventNames:
        intern_text(field.bytes(), state.names, builder);
        break;
      case pftrace::kAnnotationNames:
        intern_annotation_name(field.bytes(), state, builder);
        break;
      case pftrace::kAnnotationTexts:
        intern_annotation_text(field.bytes(), state, builder);
        break;
      case pftrace::kGpuSpecifications:
        intern_specification(field.bytes(), state, builder);
        break;
      default:
        break;
    }
  }
}

void set_defaults(std::string_view message, SequenceState& state) {
  state.default_clock = 0;
  state.default_track.reset();
  state.extra_tracks.clear();
  state.extra_double_tracks.clear();
  for (WireReader field(message); field.next();) {
    if (field.number() == pftrace::kDefaultClock) state.default_clock = field.integer();
    if (field.number() != pftrace::kDefaultEvent) continue;
    for (WireReader inner(field.bytes()); inner.next();) {
      if (inner.number() == pftrace::kTrackUuid) state.default_track = inner.integer();
      if (inner.number() == pftrace::kExtraTracks)
        inner.each_number(0, [&](std::uint64_t uuid) { state.extra_tracks.push_back(uuid); });
      if (inner.number() == pftrace::kExtraDoubleTracks)
        inner.each_number(0,
                          [&](std::uint64_t uuid) { state.extra_double_tracks.push_back(uuid); });
    }
  }
}

}  // namespace lanescope::format
