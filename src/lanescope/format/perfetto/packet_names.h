// Names of the kinds of packets that lanescope passes over.
#pragma once
#include <cstdint>
#include <string>

namespace lanescope::format {

// "ftrace_events"; "field 117" for kinds without a name here. Empty: the packet has nothing of a
// timeline (configuration, statistics of the recording, names), so nothing is lost.
std::string unread_packet_name(std::uint32_t field);

}  // namespace lanescope::format
