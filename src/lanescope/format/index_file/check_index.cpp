#include "lanescope/format/index_file/check_index.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/model/time_limits.h"

namespace lanescope::format {
namespace {

Error wrong(std::string what) {
  return {Errc::kCorruptInput, "expected rows of an index that fit each other, found " + what};
}

#define EXPECT_FIT(condition, what) \
  if (!(condition)) return wrong(what)

template <typename Id>
bool is_row(Id id, std::size_t count) {
  return raw(id) < count;
}
template <typename Id>
bool is_row_or_none(Id id, std::size_t count) {
  return id == kNone<Id> || raw(id) < count;
}

bool fits(const Scalar& scalar, std::size_t texts) {
  return scalar.is_text ? is_row(scalar.text, texts) : is_row_or_none(scalar.text, texts);
}

bool fits_id(const Flow& flow, std::size_t texts) {
  return !flow.id_is_text ||
         (flow.id_value >= 0 && static_cast<std::uint64_t>(flow.id_value) < texts);
}

bool is_bool(const void* at) {
  unsigned char byte = 0;
  std::memcpy(&byte, at, 1);
  return byte <= 1;
}

Result<void> check_values(const TraceValues& values) {
  std::int64_t length = 0;
  EXPECT_FIT(values.window_start_ns <= values.window_end_ns &&
                 !__builtin_sub_overflow(values.window_end_ns, values.window_start_ns, &length),
             "a window that ends before it starts");
  return {};
}

// Reads args, and remembers which texts are JSON.
class ArgsCheck {
 public:
  explicit ArgsCheck(const TraceColumns& columns) : columns_(columns) {
    for (const ArgShape& shape : columns.args.shapes) {
      Shape at;
      at.first_text = texts_.size();
      for (std::uint32_t i = 0; i < shape.field_count; ++i) {
        const ArgField& field = columns.args.fields[shape.first_field + i];
        at.words[field.is_shared ? 1 : 0] += arg_words(field.type);
        if (field.type == ArgType::kString || field.type == ArgType::kJson)
          texts_.push_back({field.word, field.is_shared, field.type == ArgType::kJson});
      }
      at.text_count = texts_.size() - at.first_text;
      shapes_.push_back(at);
    }
    is_json_.resize(columns.strings.size());
  }
  // Whether all that a view of them reads is there.
  bool fits(ArgsId id) {
    if (id == kNone<ArgsId>) return true;
    const auto& words = columns_.args.words;
    const auto& variants = columns_.args.variants;
    const auto& shared = columns_.args.shared;
    const std::size_t at = raw(id);
    if (at >= words.size() || words[at] >= variants.size()) return false;
    const ArgVariant& variant = variants[words[at]];
    if (variant.shape >= shapes_.size() || variant.first_word > shared.size()) return false;
    const Shape& shape = shapes_[variant.shape];
    if (shape.words[0] > words.size() - at - 1 ||
        shape.words[1] > shared.size() - variant.first_word)
      return false;
    const std::uint32_t* const own = words.data() + at + 1;
    const std::uint32_t* const common = shared.data() + variant.first_word;
    for (std::size_t i = shape.first_text; i < shape.first_text + shape.text_count; ++i) {
      const std::uint32_t text = (texts_[i].is_shared ? common : own)[texts_[i].word];
      if (text >= is_json_.size()) return false;
      if (texts_[i].is_json) is_json_[text] = true;
    }
    return true;
  }
  void add_json(StringId id) { is_json_[raw(id)] = true; }
  bool all_json_is_strict() const {
    for (std::uint32_t i = 0; i < is_json_.size(); ++i)
      if (is_json_[i] && !codec::is_strict_json(columns_.strings.view(StringId{i}))) return false;
    return true;
  }

 private:
  struct Shape {
    std::array<std::size_t, 2> words{};  // of an event's own values, and of shared ones
    std::size_t first_text = 0, text_count = 0;
  };
  struct Text {
    std::uint16_t word;
    bool is_shared, is_json;
  };
  const TraceColumns& columns_;
  std::vector<Shape> shapes_;
  std::vector<Text> texts_;    // the fields of all shapes that are texts
  std::vector<bool> is_json_;  // by text
};

Result<void> check_slices(const TraceColumns& columns, ArgsCheck& args) {
  const SliceColumns& slices = columns.slices;
  const std::size_t count = slices.size();
  const std::size_t texts = columns.strings.size(), categories = columns.categories.size();
  DurationLimit durations;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t short_ns = slices.dur_ns.short_ns[i];
    EXPECT_FIT(short_ns < slices.dur_ns.kLong ||
                   short_ns - slices.dur_ns.kLong < slices.dur_ns.long_ns.size(),
               "a slice without its duration");
    EXPECT_FIT(is_possible_time(slices.start_ns[i]) && slices.dur_ns[i] >= 0 &&
                   durations.take(slices.dur_ns[i]),
               "a slice whose times do not fit");
    EXPECT_FIT(is_row(slices.name[i], texts) && is_row(slices.category[i], categories),
               "a slice without its name or category");
    EXPECT_FIT(args.fits(slices.args[i]), "a slice without its arguments");
  }
  for (std::uint32_t track = 0; track < columns.tracks.size(); ++track) {
    const Track& at = columns.tracks[track];
    for (std::size_t i = at.first_slice; i < std::size_t{at.first_slice} + at.slice_count; ++i) {
      EXPECT_FIT(raw(slices.track[i]) == track, "a slice of another track than its place says");
      if (i == at.first_slice) continue;
      const std::int64_t before_ns = slices.start_ns[i - 1], start_ns = slices.start_ns[i];
      const bool is_ordered =
          before_ns < start_ns ||
          (before_ns == start_ns && (slices.dur_ns[i - 1] > slices.dur_ns[i] ||
                                     (slices.dur_ns[i - 1] == slices.dur_ns[i] &&
                                      slices.event_index[i - 1] <= slices.event_index[i])));
      EXPECT_FIT(is_ordered, "slices that are not in order");
    }
  }
  return {};
}

Result<void> check_instants(const TraceColumns& columns, ArgsCheck& args) {
  const InstantColumns& instants = columns.instants;
  for (std::size_t i = 0; i < instants.size(); ++i) {
    EXPECT_FIT(i == 0 || instants.time_ns[i - 1] <= instants.time_ns[i],
               "instants that are not in order");
    EXPECT_FIT(is_row(instants.name[i], columns.strings.size()) &&
                   is_row(instants.category[i], columns.categories.size()) &&
                   is_row(instants.track[i], columns.tracks.size()),
               "an instant without its name, category or track");
    EXPECT_FIT(args.fits(instants.args[i]), "an instant without its arguments");
    const char scope = instants.scope[i];
    EXPECT_FIT(scope == 't' || scope == 'p' || scope == 'g', "an instant of an unknown scope");
  }
  return {};
}

Result<void> check_counters(const TraceColumns& columns) {
  const CounterColumns& counters = columns.counters;
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const TrackId track = counters.track[i];
    EXPECT_FIT(is_row(track, columns.tracks.size()) &&
                   columns.tracks[raw(track)].kind == TrackKind::kCounter,
               "a counter without its track");
    EXPECT_FIT(
        i == 0 || counters.track[i - 1] < track ||
            (counters.track[i - 1] == track && counters.time_ns[i - 1] <= counters.time_ns[i]),
        "counters that are not in order");
  }
  return {};
}

Result<void> check_flows(const TraceColumns& columns) {
  const std::size_t texts = columns.strings.size(), tracks = columns.tracks.size();
  const Flow* before = nullptr;
  for (const Flow& flow : columns.flows) {
    // Their bytes first: a bool that is neither 0 nor 1 must not be read as one.
    EXPECT_FIT(is_bool(&flow.id_is_text) && is_bool(&flow.binds_enclosing),
               "an arrow with a number that is no bool");
    EXPECT_FIT(fits_id(flow, texts) && is_row_or_none(flow.name, texts) &&
                   is_row(flow.category, columns.categories.size()) &&
                   is_row(flow.from_track, tracks) && is_row(flow.to_track, tracks),
               "an arrow without its name, category or track");
    EXPECT_FIT(!before || before->from_ns < flow.from_ns ||
                   (before->from_ns == flow.from_ns && before->to_ns <= flow.to_ns),
               "arrows that are not in order");
    before = &flow;
  }
  return {};
}

Result<void> check_api_calls(const TraceColumns& columns) {
  EXPECT_FIT(columns.api_calls.size() <= columns.strings.size(), "an API call without its name");
  const ApiCall none;
  for (std::uint32_t i = 0; i < columns.api_calls.size(); ++i) {
    const ApiCall& call = columns.api_calls[i];
    if (std::memcmp(&call, &none, sizeof(call)) == 0) continue;
    const ApiCall named = find_api_call(columns.strings.view(StringId{i}));
    EXPECT_FIT(std::memcmp(&call, &named, sizeof(call)) == 0,
               "an API call that does not do what its name says");
  }
  return {};
}

}  // namespace

Result<void> check_index_texts(const StringColumns& strings) {
  const auto& [bytes, starts, slots] = strings;
  if (starts.empty()) {
    EXPECT_FIT(bytes.empty() && slots.empty(), "texts without a start");
    return {};
  }
  const std::size_t count = strings.size();
  EXPECT_FIT(starts[0] == 0 && starts[count] == bytes.size(), "texts outside of their bytes");
  EXPECT_FIT(count < raw(kNone<StringId>), "more texts than ids");
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_FIT(starts[i] <= starts[i + 1] && starts[i + 1] <= bytes.size(),
               "texts outside of their bytes");
    EXPECT_FIT(starts[i] == bytes.size() || (bytes[starts[i]] & 0xc0) != 0x80,
               "a text that starts inside of a character");
  }
  EXPECT_FIT(codec::is_utf8({bytes.data(), bytes.size()}), "a text that is not UTF-8");

  EXPECT_FIT(!slots.empty() && (slots.size() & (slots.size() - 1)) == 0,
             "a table of texts of a wrong size");
  std::size_t used = 0;
  for (const std::uint32_t slot : slots) {
    EXPECT_FIT(slot <= count, "a table of texts with an unknown text");
    used += slot != 0 ? 1 : 0;
  }
  // A free slot ends every search.
  EXPECT_FIT(used == count && used * 2 <= slots.size(), "a table of texts of a wrong size");
  // Texts made to collide would let this take as long as all pairs of them.
  std::uint64_t steps_left = 1024 + 64 * static_cast<std::uint64_t>(count);
  const std::size_t mask = slots.size() - 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::size_t slot = first_slot(strings.view(StringId{i})) & mask;
    for (; slots[slot] != i + 1; slot = (slot + 1) & mask)
      EXPECT_FIT(slots[slot] != 0 && steps_left-- > 0, "a text that its hash does not find");
  }
  return {};
}

Result<void> check_index_tables(const TraceColumns& columns) {
  const std::size_t texts = columns.strings.size();
  LANESCOPE_TRY_VOID(check_values(columns.values));
  for (const Process& process : columns.processes)
    EXPECT_FIT(fits(process.pid, texts) && is_row_or_none(process.name, texts) &&
                   is_row_or_none(process.labels, texts),
               "a process without its name");
  EXPECT_FIT(columns.tracks.size() < raw(kNone<TrackId>), "more tracks than ids");
  std::size_t slices = 0;
  for (const Track& track : columns.tracks) {
    EXPECT_FIT(track.kind <= TrackKind::kCounter, "a track of an unknown kind");
    EXPECT_FIT(is_row(track.process, columns.processes.size()) && fits(track.tid, texts) &&
                   is_row_or_none(track.name, texts) && is_row_or_none(track.series, texts),
               "a track without its process or name");
    EXPECT_FIT(track.first_slice == slices, "tracks that do not share out the slices");
    slices += track.slice_count;
  }
  EXPECT_FIT(slices == columns.slices.size(), "tracks that do not share out the slices");
  EXPECT_FIT(columns.categories.size() <= raw(kNone<CategoryId>) + std::size_t{1},
             "more categories than ids");
  for (const Category& category : columns.categories) {
    EXPECT_FIT(is_row_or_none(category.text, texts), "a category without its text");
    const CategoryKind kind = category.text == kNone<StringId>
                                  ? CategoryKind::kNone
                                  : category_kind(columns.strings.view(category.text));
    EXPECT_FIT(category.kind == kind, "a category that is not what its text says");
  }
  const Step* before = nullptr;
  for (const Step& step : columns.steps) {
    EXPECT_FIT(is_row(step.slice, columns.slices.size()), "a step without its slice");
    EXPECT_FIT(!before || columns.slices.start_ns[raw(before->slice)] <=
                              columns.slices.start_ns[raw(step.slice)],
               "steps that are not in order");
    before = &step;
  }
  for (const Metadata& entry : columns.metadata)
    EXPECT_FIT(is_row(entry.key, texts) && is_row(entry.json, texts), "metadata without its text");
  for (const StringId json : columns.other_metadata_events)
    EXPECT_FIT(is_row(json, texts), "metadata without its text");
  return {};
}

Result<void> check_index_rows(const TraceColumns& columns) {
  ArgsCheck args(columns);
  for (const Metadata& entry : columns.metadata) args.add_json(entry.json);
  for (const StringId json : columns.other_metadata_events) args.add_json(json);
  LANESCOPE_TRY_VOID(check_slices(columns, args));
  LANESCOPE_TRY_VOID(check_instants(columns, args));
  LANESCOPE_TRY_VOID(check_counters(columns));
  LANESCOPE_TRY_VOID(check_flows(columns));
  EXPECT_FIT(args.all_json_is_strict(), "a text that is not JSON where one belongs");
  return check_api_calls(columns);
}

}  // namespace lanescope::format
