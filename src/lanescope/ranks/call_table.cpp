// Each worker lists the groups and kinds of its own ranks; worker 0 unites the lists and gives every
// group and kind its number; all get the result. Which worker read which rank changes nothing: groups
// are in the order of their names, kinds in the order of their first use by rank and call.
#include "lanescope/ranks/call_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "lanescope/ranks/message.h"

namespace lanescope::ranks {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return out;
}

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What calls of one collective have in common. Sizes of an all-to-all, and of a root, may differ.
std::string signature(const CollectiveKind& kind) {
  const CallShape shape = shape_of(kind);
  if (shape == CallShape::kAll || shape == CallShape::kUnknown)
    return fmt::format("{}/{}/{}/{}", kind.name, kind.dtype, kind.in_elements, kind.out_elements);
  return fmt::format("{}/{}", kind.name, kind.dtype);
}

using Place = std::pair<std::uint32_t, std::uint32_t>;  // rank, call
using GroupKey = std::tuple<std::string, std::vector<std::int64_t>>;
using KindKey =
    std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::int64_t, bool>;

KindKey key_of(const CollectiveKind& kind) {
  return {kind.name,         kind.dtype, kind.in_elements,
          kind.out_elements, kind.bytes, kind.has_metadata};
}
GroupKey key_of(const ProcessGroup& group) { return {group.name, group.ranks}; }

struct FoundGroup {
  Place first{UINT32_MAX, UINT32_MAX};
  JobGroup group;
};

class Lists {
 public:
  std::map<GroupKey, FoundGroup> groups;
  std::map<KindKey, Place> kinds;

  void add(const OwnRank& rank) {
    const RankSummary& summary = rank.summary;
    std::vector<FoundGroup*> found(summary.groups.size());
    std::vector<char> seen_kind(summary.kinds.size(), 0);
    std::vector<std::unordered_set<std::int64_t>> sequences(summary.groups.size());
    std::vector<char> is_collective(summary.groups.size(), 0);
    for (std::uint32_t i = 0; i < summary.collectives.size(); ++i) {
      const CollectiveRecord& call = summary.collectives[i];
      const CollectiveKind& kind = summary.kinds[call.kind];
      if (!seen_kind[call.kind]) {
        seen_kind[call.kind] = 1;
        note_kind(key_of(kind), {rank.index, i});
      }
      FoundGroup*& group = found[kind.group];
      if (!group) group = &note_group(summary.groups[kind.group], {rank.index, i});
      ++group->group.calls;
      const CallShape shape = shape_of(kind);
      if (shape == CallShape::kSend || shape == CallShape::kReceive) continue;
      is_collective[kind.group] = 1;
      if (call.sequence < 0 || !sequences[kind.group].insert(call.sequence).second)
        group->group.has_sequences = false;
      if (call.step >= 0 && summary.steps[static_cast<std::size_t>(call.step)].number >= 0)
        group->group.has_steps = true;
    }
    for (std::size_t i = 0; i < found.size(); ++i)
      if (is_collective[i]) ++found[i]->group.collective_ranks;
  }

  std::string write() const {
    MessageWriter out;
    out.put(static_cast<std::uint64_t>(groups.size()));
    for (const auto& [key, found] : groups) {
      const JobGroup& group = found.group;
      out.put(found.first.first).put(found.first.second).put_text(group.name);
      out.put_rows(group.member_ranks).put_text(group.description).put(group.size);
      out.put_rows(group.ranks).put(group.collective_ranks).put(group.calls);
      out.put(group.has_sequences).put(group.has_steps);
    }
    out.put(static_cast<std::uint64_t>(kinds.size()));
    for (const auto& [key, first] : kinds) {
      const auto& [name, dtype, in, to, bytes, has_metadata] = key;
      out.put(first.first).put(first.second).put_text(name).put_text(dtype);
      out.put(in).put(to).put(bytes).put(has_metadata);
    }
    return out.finish();
  }

  void read(std::string_view message) {
    MessageReader in(message);
    for (auto count = in.get<std::uint64_t>(); count > 0; --count) {
      FoundGroup found;
      JobGroup& group = found.group;
      found.first.first = in.get<std::uint32_t>();
      found.first.second = in.get<std::uint32_t>();
      group.name = in.get_text();
      group.member_ranks = in.get_rows<std::int64_t>();
      group.description = in.get_text();
      group.size = in.get<std::int64_t>();
      group.ranks = in.get_rows<std::uint32_t>();
      group.collective_ranks = in.get<std::uint32_t>();
      group.calls = in.get<std::uint64_t>();
      group.has_sequences = in.get<bool>();
      group.has_steps = in.get<bool>();
      unite(std::move(found));
    }
    for (auto count = in.get<std::uint64_t>(); count > 0; --count) {
      Place first;
      first.first = in.get<std::uint32_t>();
      first.second = in.get<std::uint32_t>();
      KindKey key;
      std::get<0>(key) = in.get_text();
      std::get<1>(key) = in.get_text();
      std::get<2>(key) = in.get<std::int64_t>();
      std::get<3>(key) = in.get<std::int64_t>();
      std::get<4>(key) = in.get<std::int64_t>();
      std::get<5>(key) = in.get<bool>();
      note_kind(std::move(key), first);
    }
  }

 private:
  void note_kind(KindKey key, Place first) {
    const auto [at, is_new] = kinds.try_emplace(std::move(key), first);
    if (!is_new) at->second = std::min(at->second, first);
  }

  FoundGroup& note_group(const ProcessGroup& group, Place first) {
    FoundGroup& found = groups[key_of(group)];
    found.group.name = group.name;
    found.group.member_ranks = group.ranks;
    if (first < found.first) {
      found.first = first;
      found.group.description = group.description;
      found.group.size = group.size;
    }
    if (found.group.ranks.empty() || found.group.ranks.back() != first.first)
      found.group.ranks.push_back(first.first);
    return found;
  }

  // Adding is the same in any order.
  void unite(FoundGroup more) {
    const auto [at, is_new] =
        groups.try_emplace(GroupKey(more.group.name, more.group.member_ranks), more);
    if (is_new) return;
    FoundGroup& found = at->second;
    if (more.first < found.first) {
      found.first = more.first;
      found.group.description = std::move(more.group.description);
      found.group.size = more.group.size;
    }
    std::vector<std::uint32_t>& ranks = found.group.ranks;
    ranks.insert(ranks.end(), more.group.ranks.begin(), more.group.ranks.end());
    found.group.collective_ranks += more.group.collective_ranks;
    found.group.calls += more.group.calls;
    found.group.has_sequences &= more.group.has_sequences;
    found.group.has_steps |= more.group.has_steps;
  }
};

}  // namespace

CallShape shape_of(const CollectiveKind& kind) {
  const std::string name = lower(kind.name);
  for (const char* send : {"send", "isend", "gloo:send"})
    if (name == send) return CallShape::kSend;
  for (const char* receive : {"recv", "irecv", "gloo:recv"})
    if (name == receive) return CallShape::kReceive;
  if (holds(name, "sendrecv") && !kind.has_metadata) return CallShape::kUnknown;
  for (const char* even : {"allreduce", "all_reduce", "allgather", "all_gather", "reducescatter",
                           "reduce_scatter", "barrier"})
    if (holds(name, even)) return CallShape::kAll;
  if (holds(name, "alltoall") || holds(name, "all_to_all")) return CallShape::kUneven;
  for (const char* rooted : {"broadcast", "gather", "scatter", "reduce"})
    if (holds(name, rooted)) return CallShape::kRooted;
  return CallShape::kUnknown;
}

CallTable make_call_table(std::span<const OwnRank> own, Communicator& workers) {
  Lists lists;
  for (const OwnRank& rank : own) lists.add(rank);
  if (workers.workers() > 1) {
    Lists united;
    for (const std::string& message : workers.gather(lists.write())) united.read(message);
    lists = {};
    lists.read(workers.broadcast(united.write()));
  }
  CallTable table;
  std::map<GroupKey, std::uint32_t> group_numbers;
  for (auto& [key, found] : lists.groups) {
    group_numbers.emplace(key, static_cast<std::uint32_t>(table.groups.size()));
    std::sort(found.group.ranks.begin(), found.group.ranks.end());
    table.groups.push_back(std::move(found.group));
  }
  std::vector<std::pair<Place, KindKey>> kinds;
  for (const auto& [key, first] : lists.kinds) kinds.emplace_back(first, key);
  std::sort(kinds.begin(), kinds.end());
  std::map<KindKey, std::uint32_t> kind_numbers;
  std::map<std::string, std::uint32_t> signs;
  for (const auto& [first, key] : kinds) {
    const auto& [name, dtype, in, out, bytes, has_metadata] = key;
    kind_numbers.emplace(key, static_cast<std::uint32_t>(table.kinds.size()));
    table.kinds.push_back({name, dtype, in, out, bytes, 0, has_metadata});
    table.signs.push_back(
        signs.try_emplace(signature(table.kinds.back()), static_cast<std::uint32_t>(signs.size()))
            .first->second);
  }
  for (const OwnRank& rank : own) {
    CallTable::Numbers numbers;
    for (const ProcessGroup& group : rank.summary.groups) {
      const auto found = group_numbers.find(key_of(group));
      numbers.groups.push_back(found == group_numbers.end() ? UINT32_MAX : found->second);
    }
    for (const CollectiveKind& kind : rank.summary.kinds) {
      const auto found = kind_numbers.find(key_of(kind));
      numbers.kinds.push_back(found == kind_numbers.end() ? UINT32_MAX : found->second);
    }
    table.own.push_back(std::move(numbers));
  }
  return table;
}

}  // namespace lanescope::ranks
