#include "lanescope/format/kineto_json/cpu_profiles.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "lanescope/model/nearly_sorted.h"
#include "lanescope/model/time_limits.h"

namespace lanescope::format {
namespace {

constexpr std::uint32_t kNoNode = 0xffffffff;

// The tree of a profile. Nodes are numbered as in ProfileParts.
class FrameTree {
 public:
  FrameTree(ProfileParts& parts, StringId root) : parts_(parts) {
    sort_ids();
    find_parents();
    const auto count = static_cast<std::uint32_t>(parts_.nodes.size());
    depth_.resize(count);
    shown_.resize(count);
    std::vector<char> state(count, kNew);
    for (std::uint32_t node = 0; node < count; ++node) measure(node, root, state);
  }

  // kNoNode: there is none.
  std::uint32_t find(std::uint32_t id) const {
    const auto at = std::lower_bound(
        by_id_.begin(), by_id_.end(), id,
        [this](std::uint32_t node, auto wanted) { return parts_.nodes[node].id < wanted; });
    return at != by_id_.end() && parts_.nodes[*at].id == id ? *at : kNoNode;
  }
  // The frames of the node's stack, outermost first.
  void stack_of(std::uint32_t node, std::vector<std::uint32_t>& frames) const {
    node = shown_[node];
    frames.resize(depth_[node]);
    for (std::size_t i = frames.size(); i > 0; --i, node = parent_[node]) frames[i - 1] = node;
  }

 private:
  enum State : char { kNew, kOnPath, kDone };

  // Of equal ids the first node counts.
  void sort_ids() {
    by_id_.resize(parts_.nodes.size());
    std::iota(by_id_.begin(), by_id_.end(), 0u);
    const auto id = [this](std::uint32_t node) { return parts_.nodes[node].id; };
    std::stable_sort(by_id_.begin(), by_id_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return id(a) < id(b); });
    const auto end = std::unique(by_id_.begin(), by_id_.end(),
                                 [&](std::uint32_t a, std::uint32_t b) { return id(a) == id(b); });
    parts_.lost += static_cast<std::uint64_t>(by_id_.end() - end);
    by_id_.erase(end, by_id_.end());
  }

  void find_parents() {
    parent_.assign(parts_.nodes.size(), kNoNode);
    for (std::size_t node = 0; node < parent_.size(); ++node) {
      if (parts_.nodes[node].parent == ProfileNode::kNoParent) continue;
      parent_[node] = find(parts_.nodes[node].parent);
      if (parent_[node] == kNoNode) ++parts_.lost;
    }
    for (const ProfileParts::Link& link : parts_.links) {
      const std::uint32_t parent = find(link.parent), child = find(link.child);
      if (child != kNoNode && parent_[child] == kNoNode)
        parent_[child] = parent;
      else if (child == kNoNode || parent_[child] != parent)
        ++parts_.lost;
    }
  }

  // The depth of the node and of all above it. A cycle is cut where it was found.
  void measure(std::uint32_t node, StringId root, std::vector<char>& state) {
    path_.clear();
    for (; node != kNoNode && state[node] != kDone; node = parent_[node]) {
      if (state[node] == kOnPath) {
        parent_[path_.back()] = kNoNode;
        ++parts_.lost;
        break;
      }
      state[node] = kOnPath;
      path_.push_back(node);
    }
    for (; !path_.empty(); path_.pop_back()) {
      const std::uint32_t at = path_.back(), parent = parent_[at];
      state[at] = kDone;
      shown_[at] = at;
      if (parent == kNoNode) {
        depth_[at] = parts_.nodes[at].function == root ? 0 : 1;  // all stacks have the root
      } else if (shown_[parent] != parent || depth_[parent] == CpuProfiles::kMostFrames) {
        shown_[at] = shown_[parent];
        ++parts_.lost;
      } else {
        depth_[at] = depth_[parent] + 1;
      }
    }
  }

  ProfileParts& parts_;
  std::vector<std::uint32_t> by_id_, parent_, depth_, shown_, path_;
};

struct Sample {
  std::int64_t time_ns;
  std::uint32_t id;
};

// In order of time. A time that no clock gives ends them: all later ones count from it.
std::vector<Sample> samples_of(ProfileParts& parts, std::int64_t start_ns, ImportStats& stats) {
  std::stable_sort(parts.chunks.begin(), parts.chunks.end(),
                   [](const ProfileParts::Chunk& a, const ProfileParts::Chunk& b) {
                     return a.time_ns < b.time_ns;
                   });
  std::vector<Sample> samples;
  samples.reserve(parts.samples.size());
  std::int64_t time_ns = start_ns;
  for (const ProfileParts::Chunk& chunk : parts.chunks) {
    for (std::size_t i = chunk.begin; i < chunk.end; ++i) {
      const std::int64_t delta_ns = parts.deltas_ns[i];
      // Both are possible times, so their sum fits 64 bits.
      if (!is_possible_time(delta_ns) || !is_possible_time(time_ns + delta_ns)) {
        parts.lost += parts.samples.size() - samples.size();
        return samples;
      }
      time_ns += delta_ns;
      samples.push_back({time_ns, parts.samples[i]});
    }
  }
  const auto earlier = [](const Sample& a, const Sample& b) { return a.time_ns < b.time_ns; };
  if (!std::is_sorted(samples.begin(), samples.end(), earlier)) {
    stats.count(ImportIssue::kOutOfOrder);
    std::stable_sort(samples.begin(), samples.end(), earlier);
  }
  return samples;
}

// The part of a path or an address that people know a source by.
std::string_view short_url(std::string_view url) {
  if (url.starts_with("node:")) return url;
  const std::string_view path = url.substr(0, url.find_first_of("?#"));
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  return name.empty() ? url : name;
}

// Collects the slices of one track, in order of their starts, outer ones first.
class SliceWriter {
 public:
  SliceWriter(TraceBuilder& builder, ProfileParts& parts)
      : builder_(builder),
        parts_(parts),
        labels_(parts.nodes.size()),
        left_(CpuProfiles::kFreeSlices + parts.text_bytes) {}

  // From `time_ns` on the stack is `frames`.
  void change(std::int64_t time_ns, const std::vector<std::uint32_t>& frames) {
    std::size_t same = 0;
    while (same < open_.size() && same < frames.size() && rows_[open_[same]].node == frames[same])
      ++same;
    for (std::size_t i = same; i < open_.size(); ++i) rows_[open_[i]].end_ns = time_ns;
    open_.resize(same);
    for (std::size_t i = same; i < frames.size(); ++i) {
      if (left_ == 0) {
        ++parts_.lost;
        return;
      }
      --left_;
      open_.push_back(rows_.size());
      rows_.push_back({frames[i], time_ns, time_ns});
    }
  }

  void add_to(TrackId track) {
    const CategoryId category = builder_.category("cpu_profile");
    for (const Row& row : rows_) {
      const Label& label = label_of(row.node);
      builder_.add_slice(track, category, label.name, row.start_ns,
                         saturating_length(row.start_ns, row.end_ns), label.args);
    }
  }

 private:
  struct Row {
    std::uint32_t node;
    std::int64_t start_ns, end_ns;
  };
  struct Label {
    StringId name = kNone<StringId>;
    ArgsId args = kNone<ArgsId>;
  };

  const Label& label_of(std::uint32_t node) {
    Label& label = labels_[node];
    if (label.name != kNone<StringId>) return label;
    const ProfileNode& frame = parts_.nodes[node];
    std::string name(frame.function == kNone<StringId> ? "(anonymous)"
                                                       : builder_.text(frame.function));
    if (frame.url != kNone<StringId>) {
      name.append(" (").append(short_url(builder_.text(frame.url)));
      if (frame.line >= 0) name.append(":").append(std::to_string(std::int64_t{frame.line} + 1));
      name.append(")");
    }
    label.name = builder_.intern(name);
    ArgsBuilder& args = builder_.args();
    args.begin();
    const auto add_text = [&](std::string_view key, StringId text) {
      if (text != kNone<StringId>) args.add_string(builder_.intern(key), ArgKey::kCount, text);
    };
    const auto add_place = [&](std::string_view key, std::int32_t place) {
      if (place >= 0) args.add_int(builder_.intern(key), ArgKey::kCount, std::int64_t{place} + 1);
    };
    add_text("url", frame.url);
    add_place("line", frame.line);
    add_place("column", frame.column);
    add_text("code type", frame.code_type);
    label.args = args.end();
    return label;
  }

  TraceBuilder& builder_;
  ProfileParts& parts_;
  std::vector<Label> labels_;
  std::uint64_t left_;  // slices
  std::vector<Row> rows_;
  std::vector<std::size_t> open_;  // rows
};

std::string text_of(const Scalar& scalar, const TraceBuilder& builder) {
  return scalar.is_text ? std::string(builder.text(scalar.text)) : std::to_string(scalar.number);
}

}  // namespace

void CpuProfiles::add(std::string_view name, const Scalar& pid, const Scalar& tid, const Scalar& id,
                      std::int64_t time_ns, std::string_view data, std::uint64_t offset) {
  const auto [it, added] = profile_by_id_.try_emplace({key_of(pid), key_of(id)}, profiles_.size());
  if (added) profiles_.push_back({pid, tid, id, false, offset, {}});
  Profile& profile = profiles_[it->second];
  if (name == "Profile") {
    if (profile.has_thread) ++profile.parts.lost;  // the first one counts
    if (!profile.has_thread) profile.tid = tid;
    profile.has_thread = true;
  }
  reader_.read(data, time_ns, profile.parts);
  if (name == "Profile" && !profile.parts.start_ns) profile.parts.start_ns = time_ns;
}

void CpuProfiles::add_file(std::string_view json) {
  profiles_.emplace_back();
  reader_.read(json, 0, profiles_.back().parts);
}

void CpuProfiles::finish(ChromeEvents& chrome) {
  if (profiles_.empty()) return;
  std::map<std::pair<Key, Key>, StringId> thread_names;
  chrome.each_thread_name([&](const Scalar& pid, const Scalar& tid, StringId name) {
    thread_names[{key_of(pid), key_of(tid)}] = name;
  });
  for (Profile& profile : profiles_) {
    add_slices(profile, chrome, thread_names);
    if (profile.parts.lost > 0)
      builder_.stats().count(ImportIssue::kProfileLost, profile.offset, profile.parts.lost);
    profile.parts = {};
  }
}

void CpuProfiles::add_slices(Profile& profile, ChromeEvents& chrome,
                             const std::map<std::pair<Key, Key>, StringId>& thread_names) {
  ProfileParts& parts = profile.parts;
  if (!parts.start_ns) {  // nothing says when the first sample was
    parts.lost += parts.samples.size();
    return;
  }
  const std::vector<Sample> samples = samples_of(parts, *parts.start_ns, builder_.stats());
  if (samples.empty()) return;
  std::string name = "CPU profile";
  std::string place = name;  // a profile lies next to its thread, on a track of its own
  if (profile.has_thread) {
    place = text_of(profile.tid, builder_) + " CPU profile " + text_of(profile.id, builder_);
    const auto found = thread_names.find({key_of(profile.pid), key_of(profile.tid)});
    name += " (thread " +
            (found != thread_names.end() ? std::string(builder_.text(found->second))
                                         : text_of(profile.tid, builder_)) +
            ")";
  }
  const Scalar tid{true, 0, builder_.intern(place)};
  chrome.set_thread_name(profile.pid, tid, builder_.intern(name));
  const FrameTree tree(parts, builder_.intern("(root)"));
  SliceWriter slices(builder_, parts);
  std::vector<std::uint32_t> frames;
  std::uint32_t shown = kNoNode;
  const std::int64_t end_ns =
      std::max(parts.end_ns.value_or(samples.back().time_ns), samples.back().time_ns);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::uint32_t node = tree.find(samples[i].id);
    if (node == kNoNode) ++parts.lost;
    // A stack that lasts no time has no slice.
    const std::int64_t next_ns = i + 1 < samples.size() ? samples[i + 1].time_ns : end_ns;
    if (next_ns == samples[i].time_ns) continue;
    if (node == shown) continue;
    shown = node;
    frames.clear();
    if (node != kNoNode) tree.stack_of(node, frames);
    slices.change(samples[i].time_ns, frames);
  }
  slices.change(end_ns, {});
  slices.add_to(chrome.track(profile.pid, tid, false));
}

}  // namespace lanescope::format
