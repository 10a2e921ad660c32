// Where the events of a Perfetto trace happen. Events name a track by its number, and the track may
// be described later in the file, so events are kept by slot until the file ends.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lanescope/format/perfetto/sequence_state.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// What is known of a track at the end of the file.
struct TrackSlot {
  enum Kind : std::uint8_t { kNamed, kThread, kProcess, kCounter, kStream, kAsync } kind = kNamed;
  std::uint64_t uuid = 0;  // or the id of async slices
  std::optional<std::uint64_t> parent = {};
  StringId name = kNone<StringId>;
  std::int64_t pid = 0, tid = 0;  // kThread, kProcess, kAsync; kStream: the GPU and the queue
  std::optional<std::int64_t> sort_index = {};
  std::int64_t unit = 1;  // of a counter
  bool is_incremental = false, has_pid = false;
  std::optional<TrackId> own = {};  // set if lanescope wrote the file: the track itself
};

class TrackSlots {
 public:
  explicit TrackSlots(TraceBuilder& builder) : builder_(builder) {}

  std::uint32_t of_uuid(std::uint64_t uuid);
  std::optional<std::uint32_t> find_uuid(std::uint64_t uuid) const {
    const auto found = by_uuid_.find(uuid);
    return found == by_uuid_.end() ? std::nullopt : std::optional(found->second);
  }
  std::uint32_t of_thread(const LegacyThread& thread);
  std::uint32_t of_stream(std::int64_t gpu, std::uint64_t queue, StringId name);
  std::uint32_t of_async(std::int64_t pid, std::uint64_t id);
  const TrackSlot& slot(std::uint32_t index) const { return slots_[index]; }
  std::size_t size() const { return slots_.size(); }

  void describe(std::string_view track_descriptor);
  void describe_process(std::string_view process_descriptor);
  // The track of a slot's slices, once all is described. `category_text`: of the first slice.
  TrackId track(std::uint32_t index, StringId category_text);
  // The track of a slot's values.
  TrackId counter(std::uint32_t index);
  // Names the processes of the tracks; after the last track().
  void name_processes();

 private:
  struct ProcessNames {
    StringId name = kNone<StringId>, labels = kNone<StringId>;
    std::optional<std::int64_t> sort_index;
  };
  using Key = std::pair<TrackSlot::Kind, std::pair<std::int64_t, std::uint64_t>>;
  std::uint32_t find_or_add(const Key& key, const TrackSlot& slot);
  void describe_thread(std::string_view message, TrackSlot& slot);
  void describe_counter(std::string_view message, TrackSlot& slot);
  void describe_own(std::string_view message, TrackSlot& slot);
  std::int64_t process_above(const TrackSlot& slot) const;
  Scalar number(std::int64_t value) const { return {false, value, kNone<StringId>}; }
  Scalar text(std::string_view value) { return {true, 0, builder_.intern(value)}; }
  StringId clean(std::string_view text);

  TraceBuilder& builder_;
  std::vector<TrackSlot> slots_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_uuid_;
  std::map<Key, std::uint32_t> by_key_;
  std::map<std::int64_t, ProcessNames> processes_;  // by pid
};

}  // namespace lanescope::format
