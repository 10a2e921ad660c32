// Problem: the file has a list of signed byte counts with addresses; people ask what held the peak
// and what leaked. Idea: pair each allocation with the next release of its address, and give each
// allocation the names that were open on its thread, by walking a track's slices and records
// together. Cost: one sort of the records by track, then linear.
//
// Example: +100 at A, +50 at B, -100 at A. Levels 100, 150, 50; the peak is at the second record,
// with both blocks; B was never freed.
#include "lanescope/analysis/memory_timeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "lanescope/analysis/thinning.h"
#include "lanescope/base/sort_rows.h"

namespace lanescope::analysis {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

std::int64_t clamped(std::int64_t value) { return std::clamp(value, -kMostBytes, kMostBytes); }

struct Record {
  std::uint32_t instant = 0;
  std::uint32_t owner = 0;
};

// "train.py(31): step" of the program, not of a library, a module or code that Python made.
bool is_own_code(const FrameTable& frames, const Trace& trace, StringId name) {
  const names::PythonFrame* const frame = frames.find(name);
  return frame && frame->has_line_mark && !frame->is_module && !frame->is_of_library &&
         !trace.text(name).starts_with('<');
}

class Owners {
 public:
  explicit Owners(std::vector<MemoryOwner>& owners) : owners_(owners) {}
  std::uint32_t index(const MemoryOwner& owner) {
    const auto [found, is_new] =
        index_.try_emplace(owner, static_cast<std::uint32_t>(owners_.size()));
    if (is_new) owners_.push_back(owner);
    return found->second;
  }

 private:
  std::vector<MemoryOwner>& owners_;
  std::map<MemoryOwner, std::uint32_t> index_;
};

MemoryOwner owner_of(const Trace& trace, const FrameTable& frames,
                     const std::vector<SliceId>& open) {
  MemoryOwner owner;
  bool op_is_found = false;
  for (auto each = open.rbegin(); each != open.rend(); ++each) {
    const StringId name = trace.slices().name[raw(*each)];
    switch (trace.kind(*each)) {
      case CategoryKind::kCpuOp:
        if (!op_is_found) owner.op = name;
        break;
      case CategoryKind::kUserAnnotation:
        op_is_found = true;
        if (owner.annotation == kNone<StringId> && !trace.name(*each).starts_with("ProfilerStep#"))
          owner.annotation = name;
        break;
      default:
        if (owner.frame == kNone<StringId> && is_own_code(frames, trace, name)) owner.frame = name;
    }
  }
  return owner;
}

// Fills in the owners of a track's records, which are in order of time.
void find_owners(const Trace& trace, const FrameTable& frames, TrackId track_id,
                 std::vector<Record*>& records, Owners& owners) {
  const Track& track = trace.track(track_id);
  std::vector<SliceId> open;
  std::uint32_t next = track.first_slice;
  const std::uint32_t end = track.first_slice + track.slice_count;
  for (Record* record : records) {
    const std::int64_t time = trace.instants().time_ns[record->instant];
    for (; next < end && trace.start_ns(SliceId{next}) <= time; ++next) {
      const SliceId id{next};
      const CategoryKind kind = trace.kind(id);
      if (!is_front_end(kind) && kind != CategoryKind::kPythonFunction) continue;
      while (!open.empty() && (trace.end_ns(open.back()) <= trace.start_ns(id) ||
                               trace.end_ns(open.back()) < trace.end_ns(id)))
        open.pop_back();
      open.push_back(id);
    }
    while (!open.empty() && trace.end_ns(open.back()) < time) open.pop_back();
    record->owner = owners.index(owner_of(trace, frames, open));
  }
}

void set_levels(const Trace& trace, const std::vector<Record>& records, MemoryDevice& device) {
  bool any_total = false;
  device.has_totals = device.has_reserved = true;
  for (const Record& record : records) {
    const ArgsView args = trace.args(trace.instants().args[record.instant]);
    MemorySample sample;
    sample.time_ns = trace.instants().time_ns[record.instant];
    sample.bytes = clamped(args.integer(ArgKey::kMemoryBytes).value_or(0));
    const auto allocated = args.integer(ArgKey::kTotalAllocated);
    const auto reserved = args.integer(ArgKey::kTotalReserved);
    device.has_totals = device.has_totals && allocated.has_value();
    device.has_reserved = device.has_reserved && reserved.has_value();
    any_total = any_total || allocated.value_or(0) != 0;
    sample.allocated = clamped(allocated.value_or(0));
    sample.reserved = std::max<std::int64_t>(0, clamped(reserved.value_or(0)));
    device.peak_reserved = std::max(device.peak_reserved, sample.reserved);
    device.samples.push_back(sample);
  }
  device.has_totals = device.has_totals && any_total;
  device.has_reserved = device.has_reserved && device.peak_reserved > 0;
  std::int64_t level = 0;
  for (std::size_t i = 0; i < device.samples.size(); ++i) {
    MemorySample& sample = device.samples[i];
    level = add_bytes(level, sample.bytes);
    if (!device.has_totals) sample.allocated = level;
    if (sample.allocated > device.samples[device.peak].allocated) device.peak = i;
  }
}

std::uint64_t address_of(const ArgsView& args) {
  const ArgField* field = args.find(ArgKey::kAddr);
  if (field->type == ArgType::kUint64) return args.bits(*field);
  return static_cast<std::uint64_t>(args.integer(field).value_or(0));
}

void pair_blocks(const Trace& trace, const std::vector<Record>& records, MemoryDevice& device) {
  device.has_blocks = std::all_of(records.begin(), records.end(), [&](const Record& record) {
    return trace.args(trace.instants().args[record.instant]).has(ArgKey::kAddr);
  });
  if (!device.has_blocks) return;
  std::unordered_map<std::uint64_t, std::size_t> open;  // address -> block
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    const std::int64_t bytes = device.samples[i].bytes;
    const ArgsView args = trace.args(trace.instants().args[records[i].instant]);
    const std::uint64_t address = address_of(args);
    const auto found = open.find(address);
    if (found != open.end()) device.blocks[found->second].last = i;
    if (bytes > 0) {
      if (found != open.end()) ++device.lost_free_count;
      open[address] = device.blocks.size();
      device.blocks.push_back({i, std::nullopt, bytes, records[i].owner, false});
    } else if (found != open.end()) {
      open.erase(found);
    } else if (bytes < 0) {
      device.blocks.push_back({0, i, -bytes, records[i].owner, true});
    }
  }
}

void add_block(std::map<std::uint32_t, MemoryShare>& by_owner, const MemoryBlock& block) {
  MemoryShare& share = by_owner[block.owner];
  share.owner = block.owner;
  share.bytes = add_bytes(share.bytes, block.bytes);
  ++share.blocks;
}

std::vector<MemoryShare> sorted_shares(const std::map<std::uint32_t, MemoryShare>& by_owner) {
  std::vector<MemoryShare> shares;
  for (const auto& [owner, share] : by_owner) shares.push_back(share);
  sort_rows(shares.begin(), shares.end(),
            [](const MemoryShare& a, const MemoryShare& b) { return a.bytes > b.bytes; });
  return shares;
}

}  // namespace

std::int64_t MemoryDevice::allocated_before(std::int64_t time_ns) const {
  const auto after = std::lower_bound(
      samples.begin(), samples.end(), time_ns,
      [](const MemorySample& sample, std::int64_t time) { return sample.time_ns < time; });
  return after == samples.begin() ? allocated_at_start() : std::prev(after)->allocated;
}

MemoryTimeline compute_memory_timeline(const Trace& trace, const FrameTable* frames) {
  MemoryTimeline timeline;
  const auto end_ns = find_memory_end(trace);
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Record>> by_device;
  const InstantColumns& instants = trace.instants();
  for (std::uint32_t i = 0; i < instants.size(); ++i) {
    if (trace.text(instants.name[i]) != "[memory]") continue;
    const ArgsView args = trace.args(instants.args[i]);
    if (!args.integer(ArgKey::kMemoryBytes)) continue;
    // Some threads wrote a little longer than others.
    if (end_ns && instants.time_ns[i] > *end_ns) continue;
    by_device[{args.integer(ArgKey::kDeviceType).value_or(0),
               args.integer(ArgKey::kDeviceId).value_or(-1)}]
        .push_back({i, 0});
  }
  if (by_device.empty()) return timeline;

  std::map<std::uint32_t, std::vector<Record*>> by_track;
  std::vector<Record*> all;
  for (auto& [key, records] : by_device)
    for (Record& record : records) all.push_back(&record);
  std::sort(all.begin(), all.end(),
            [](const Record* a, const Record* b) { return a->instant < b->instant; });
  for (Record* record : all) by_track[raw(instants.track[record->instant])].push_back(record);
  Owners owners(timeline.owners);
  const FrameTable own = frames ? FrameTable() : FrameTable(trace);
  for (auto& [track, records] : by_track)
    find_owners(trace, frames ? *frames : own, TrackId{track}, records, owners);

  for (const auto& [key, records] : by_device) {
    MemoryDevice device;
    device.type = key.first;
    device.id = key.second;
    set_levels(trace, records, device);
    pair_blocks(trace, records, device);
    timeline.devices.push_back(std::move(device));
  }
  return timeline;
}

MemoryHeld memory_held(const MemoryDevice& device, std::size_t index) {
  std::map<std::uint32_t, MemoryShare> by_owner;
  std::int64_t known = 0;
  for (const MemoryBlock& block : device.blocks) {
    if (block.before_recording || block.first > index || (block.last && *block.last <= index))
      continue;
    add_block(by_owner, block);
    known = add_bytes(known, block.bytes);
  }
  return {sorted_shares(by_owner), device.samples[index].allocated - known};
}

std::vector<MemoryShare> never_freed(const MemoryDevice& device, std::int64_t start_ns,
                                     std::int64_t end_ns) {
  std::map<std::uint32_t, MemoryShare> by_owner;
  for (const MemoryBlock& block : device.blocks) {
    const std::int64_t time_ns = device.samples[block.first].time_ns;
    if (!block.before_recording && !block.last && time_ns >= start_ns && time_ns < end_ns)
      add_block(by_owner, block);
  }
  return sorted_shares(by_owner);
}

std::vector<MemoryStep> compute_memory_steps(const Trace& trace, const MemoryDevice& device) {
  std::vector<MemoryStep> steps;
  for (const Step& each : trace.steps()) {
    MemoryStep step;
    step.number = each.number;
    step.start_ns = trace.start_ns(each.slice);
    step.end_ns = trace.end_ns(each.slice);
    if (!steps.empty() &&
        (steps.back().number + 1 == step.number || steps.back().end_ns > step.start_ns))
      steps.back().end_ns = step.start_ns;
    steps.push_back(step);
  }
  if (const auto end_ns = find_memory_end(trace))
    std::erase_if(steps, [&](const MemoryStep& step) { return step.end_ns > *end_ns; });
  auto sample = device.samples.begin();
  for (MemoryStep& step : steps) {
    while (sample != device.samples.end() && sample->time_ns < step.start_ns) ++sample;
    step.start_bytes = step.peak_bytes = device.allocated_before(step.start_ns);
    for (; sample != device.samples.end() && sample->time_ns < step.end_ns; ++sample)
      step.peak_bytes = std::max(step.peak_bytes, sample->allocated);
    step.end_bytes = device.allocated_before(step.end_ns);
  }
  for (const MemoryBlock& block : device.blocks) {
    if (block.before_recording || block.last) continue;
    const std::int64_t time_ns = device.samples[block.first].time_ns;
    const auto after = std::upper_bound(
        steps.begin(), steps.end(), time_ns,
        [](std::int64_t time, const MemoryStep& step) { return time < step.start_ns; });
    if (after != steps.begin() && time_ns < std::prev(after)->end_ns) {
      std::int64_t& bytes = std::prev(after)->never_freed_bytes;
      bytes = add_bytes(bytes, block.bytes);
    }
  }
  return steps;
}

std::int64_t add_bytes(std::int64_t a, std::int64_t b) { return clamped(clamped(a) + clamped(b)); }

std::string device_type_name(std::int64_t type) {
  static constexpr std::array<const char*, 21> kNames = {
      "CPU",  "CUDA", "MKLDNN", "OpenGL", "OpenCL", "IDEEP", "HIP",
      "FPGA", "MAIA", "XLA",    "Vulkan", "Metal",  "XPU",   "MPS",
      "Meta", "HPU",  "VE",     "Lazy",   "IPU",    "MTIA",  "PrivateUse1"};
  return type >= 0 && type < static_cast<std::int64_t>(kNames.size())
             ? kNames[static_cast<std::size_t>(type)]
             : "device type " + std::to_string(type);
}

}  // namespace lanescope::analysis
