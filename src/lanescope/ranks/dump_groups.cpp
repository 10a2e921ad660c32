#include "lanescope/ranks/dump_groups.h"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "lanescope/ranks/call_table.h"
#include "lanescope/ranks/roster.h"

namespace lanescope::ranks {

std::vector<FlightDump> choose_dumps(std::vector<DumpFile> files,
                                     std::vector<std::string>& remarks) {
  std::map<std::int64_t, FlightDump> by_rank;
  for (DumpFile& file : files) {
    if (!file.dump) {
      remarks.push_back(fmt::format("{} is left out: {}", file.file,
                                    message_without(file.file, file.dump.error().message)));
      continue;
    }
    FlightDump dump = *std::move(file.dump);
    if (!dump.rank) {
      remarks.push_back(fmt::format(
          "{} is left out: its name does not say its rank, as nccl_trace_rank_3 does", file.file));
      continue;
    }
    if (dump.skipped > 0)
      remarks.push_back(
          fmt::format("{}: {} entries without a name are left out", file.file, dump.skipped));
    const auto [at, is_new] = by_rank.try_emplace(*dump.rank, dump);
    if (is_new) continue;
    // The later dump of a rank knows more; a pickle and JSON of one moment are the same.
    const bool more = dump.calls.size() > at->second.calls.size();
    remarks.push_back(fmt::format("{} is left out: {} is of rank {} as well",
                                  more ? at->second.file : dump.file,
                                  more ? dump.file : at->second.file, *dump.rank));
    if (more) at->second = std::move(dump);
  }
  std::vector<FlightDump> dumps;
  for (auto& [rank, dump] : by_rank) dumps.push_back(std::move(dump));
  return dumps;
}

DumpGroups::DumpGroups(const std::vector<FlightDump>& dumps) : dumps_(dumps) {
  for (std::size_t i = 0; i < dumps.size(); ++i) add_dump(i);
  for (auto& [name, group] : groups_) {
    std::set<std::int64_t> ranks(group.ranks.begin(), group.ranks.end());
    for (const auto& [rank, member] : group.members) ranks.insert(rank);
    for (const std::int64_t rank : ranks)
      if (has_dump(rank)) group.with_dump.push_back(rank);
  }
}

void DumpGroups::add_dump(std::size_t index) {
  const FlightDump& dump = dumps_[index];
  dump_of_rank_.emplace(*dump.rank, index);
  HangRank rank{*dump.rank, dump.file, dump.calls.size(), {}, {}};
  for (std::size_t i = 0; i < dump.calls.size(); ++i) {
    const FlightCall& each = dump.calls[i];
    const bool ended = each.state == CallState::kCompleted;
    if (!ended && !rank.open) rank.open = i;
    if (ended) rank.ended = i;
    const FlightGroup& group = dump.groups[each.group];
    DumpGroup& into = groups_[{group.name, group.description}];
    if (into.ranks.empty()) into.ranks = group.ranks;
    GroupMember& member = into.members[*dump.rank];
    member.dump = index;
    if (each.point_to_point)
      member.pairs.push_back(i);
    else if (each.sequence >= 0)
      member.calls[each.sequence].push_back(i);
  }
  calls_ += dump.calls.size();
  ranks_.push_back(std::move(rank));
}

const std::vector<std::size_t>* DumpGroup::calls_at(std::int64_t rank,
                                                    std::int64_t sequence) const {
  const auto member = members.find(rank);
  if (member == members.end()) return nullptr;
  const auto found = member->second.calls.find(sequence);
  return found == member->second.calls.end() ? nullptr : &found->second;
}

const FlightCall& DumpGroups::call_of(const DumpGroup& group, std::int64_t rank,
                                      std::int64_t sequence) const {
  const GroupMember& member = group.members.at(rank);
  return call(member, member.calls.at(sequence).front());
}

std::string sign_of(const FlightCall& call) {
  CollectiveKind kind;
  kind.name = call.name;
  kind.has_metadata = true;
  const CallShape shape = shape_of(kind);
  if (shape != CallShape::kAll)
    return shape == CallShape::kUnknown ? call.name : call.name + "/" + call.dtype;
  const bool gathers = call.name.find("gather") != std::string::npos;
  const bool scatters = call.name.find("scatter") != std::string::npos;
  return fmt::format("{}/{}/{}/{}", call.name, call.dtype, gathers ? -1 : call.in_elements,
                     scatters ? -1 : call.out_elements);
}

std::optional<CallPair> pair_of(std::string_view name) {
  CallPair pair;
  pair.is_send = name.starts_with("send ");
  if (!pair.is_send && !name.starts_with("recv ")) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto own = std::from_chars(name.data() + 5, end, pair.own);
  if (own.ec != std::errc() || end - own.ptr < 3) return std::nullopt;
  const auto other = std::from_chars(own.ptr + 2, end, pair.other);
  if (other.ec != std::errc() || other.ptr != end) return std::nullopt;
  return pair;
}

}  // namespace lanescope::ranks
