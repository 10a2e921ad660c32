// The tracks of a trace as Perfetto's track descriptors.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/format/perfetto/packet_output.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// Writes a thread as a thread of its process. Writes a stream, an async track or a counter as a child
// track of its process; if the process is a device or a text, as a child of a group with its name.
class TrackWriter {
 public:
  // Borrows both.
  TrackWriter(const Trace& trace, PacketOutput& out);
  void write();  // all of them, before the first event
  std::uint64_t uuid(TrackId track) const {
    return group_uuid(trace_.processes().size()) + raw(track);
  }
  // A further track for the slices of `track` that overlap others; `row` counts from 1. In the
  // viewer, tracks with the same name and parent are drawn together.
  std::uint64_t add_row(TrackId track, std::size_t row);

 private:
  // Each process has two ids: one for itself, and one for the group of its tracks that are not threads.
  static std::uint64_t process_uuid(std::size_t process) { return 2 * process + 1; }
  static std::uint64_t group_uuid(std::size_t process) { return 2 * process + 2; }
  void write_process(std::size_t process);
  void write_track(TrackId id, std::uint64_t uuid, std::size_t row);
  void packet(std::string_view descriptor);
  bool is_real(const Scalar& pid) const;  // a pid that Perfetto can have
  bool is_real_thread(const Track& track) const;
  std::string name_of(const Process& process) const;
  std::string name_of(const Track& track) const;
  std::string own_place(const Track& track) const;
  std::string own_place(const Process& process) const;

  const Trace& trace_;
  PacketOutput& out_;
  std::vector<bool> has_thread_, has_other_;  // by process
  std::uint64_t next_uuid_;
};

}  // namespace lanescope::format
