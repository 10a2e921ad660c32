// The calls of a job's flight-recorder dumps by process group, rank and number: what find_hang() compares.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/ranks/flight_dump.h"
#include "lanescope/ranks/hang.h"

namespace lanescope::ranks {

using NamedGroup = std::pair<std::string, std::string>;  // name, description

// What one rank called in one group. Calls are indices into the rank's dump.
struct GroupMember {
  std::size_t dump = 0;
  std::map<std::int64_t, std::vector<std::size_t>> calls;  // collectives, by sequence number
  std::vector<std::size_t> pairs;                          // sends and receives, in order
};

struct DumpGroup {
  std::vector<std::int64_t> ranks;              // of the job, in the group's order; empty: unknown
  std::map<std::int64_t, GroupMember> members;  // by rank: those with a call of it in their dump
  std::vector<std::int64_t> with_dump;          // its ranks with a dump, rising

  // Null: the rank's dump has no call with that number.
  const std::vector<std::size_t>* calls_at(std::int64_t rank, std::int64_t sequence) const;
};

// One dump a rank, by rank: of several the one with most calls. What does not count, and why, is added to
// `remarks`.
std::vector<FlightDump> choose_dumps(std::vector<DumpFile> files,
                                     std::vector<std::string>& remarks);

// Borrows the dumps. Any thread.
class DumpGroups {
 public:
  // One dump a rank; each has its rank. O(calls log calls).
  explicit DumpGroups(const std::vector<FlightDump>& dumps);

  const std::map<NamedGroup, DumpGroup>& groups() const { return groups_; }
  const std::vector<HangRank>& ranks() const { return ranks_; }  // one a dump
  std::uint64_t calls() const { return calls_; }
  bool has_dump(std::int64_t rank) const { return dump_of_rank_.contains(rank); }
  // The rank must have a dump.
  const FlightDump& dump(std::int64_t rank) const { return dumps_[dump_of_rank_.at(rank)]; }
  const HangRank& state(std::int64_t rank) const { return ranks_[dump_of_rank_.at(rank)]; }
  const FlightCall& call(const GroupMember& member, std::size_t at) const {
    return dumps_[member.dump].calls[at];
  }
  // The first call of that number; the rank must have one.
  const FlightCall& call_of(const DumpGroup& group, std::int64_t rank, std::int64_t sequence) const;

 private:
  void add_dump(std::size_t index);

  const std::vector<FlightDump>& dumps_;
  std::map<std::int64_t, std::size_t> dump_of_rank_;
  std::map<NamedGroup, DumpGroup> groups_;
  std::vector<HangRank> ranks_;
  std::uint64_t calls_ = 0;
};

// Equal for calls that belong together. Sizes that may differ from rank to rank are left out.
std::string sign_of(const FlightCall& call);

// "send 0->1" and "recv 1<-0": ranks within the group.
struct CallPair {
  bool is_send = false;
  std::int64_t own = -1, other = -1;
};
std::optional<CallPair> pair_of(std::string_view name);

}  // namespace lanescope::ranks
