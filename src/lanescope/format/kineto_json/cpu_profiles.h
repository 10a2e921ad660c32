// V8's CPU profiles become slices: Chrome's events `Profile` and `ProfileChunk` (phase P), and .cpuprofile files.
//
// Problem: a profile is a tree of frames and a list of samples, each with a node of the tree and the time since the sample before.
// Idea: the stack of a sample lasts until the next one; a frame is one slice as long as the stacks of consecutive samples have the
// same nodes from the root down to it. Example: main>a, main>a>b, main at 0, 10, 20 us, end at 30: main 0-30, a 0-20, b 10-20.
// Cost: O(n log n) of nodes and samples, and for each sample at most kMostFrames steps.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lanescope/format/kineto_json/chrome_events.h"
#include "lanescope/format/kineto_json/profile_text.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// One thread; borrows the builder. What cannot be placed is counted as kProfileLost. Memory until finish(): 12 bytes a sample and
// 28 a node. Slices: at most kFreeSlices, and one for each byte of a profile.
class CpuProfiles {
 public:
  static constexpr std::uint32_t kMostFrames =
      512;  // of a stack, from its root; V8 records up to 255
  static constexpr std::uint64_t kFreeSlices = 1u << 16;

  explicit CpuProfiles(TraceBuilder& builder) : builder_(builder), reader_(builder) {}

  // Whether an event of phase P with that name belongs to a profile.
  static bool has_name(std::string_view name) {
    return name == "Profile" || name == "ProfileChunk";
  }
  // One event. `data`: the argument of that name, an object. A profile is all events with one pid and id, and its thread is that
  // of its event `Profile`.
  void add(std::string_view name, const Scalar& pid, const Scalar& tid, const Scalar& id,
           std::int64_t time_ns, std::string_view data, std::uint64_t offset);
  // A whole .cpuprofile file, as one object.
  void add_file(std::string_view json);

  // Adds the slices to the builder, and the names of their tracks to `chrome`, which knows those of threads. Once, after the last
  // event.
  void finish(ChromeEvents& chrome);

 private:
  struct Profile {
    Scalar pid, tid, id;
    bool has_thread = false;
    std::uint64_t offset = 0;
    ProfileParts parts;
  };
  using Key = std::tuple<bool, StringId, std::int64_t>;  // of a Scalar
  static Key key_of(const Scalar& scalar) { return {scalar.is_text, scalar.text, scalar.number}; }

  void add_slices(Profile& profile, ChromeEvents& chrome,
                  const std::map<std::pair<Key, Key>, StringId>& thread_names);

  TraceBuilder& builder_;
  ProfileTextReader reader_;
  std::vector<Profile> profiles_;
  std::map<std::pair<Key, Key>, std::size_t> profile_by_id_;  // by pid and id
};

}  // namespace lanescope::format
