// Ids instead of pointers: indexes into one Trace's columns. Absent is kNone<Id>; 0 is a value
// like any other.
#pragma once
#include <cstdint>
#include <type_traits>

namespace lanescope {

enum class StringId : std::uint32_t {};
enum class TrackId : std::uint32_t {};
enum class ProcessId : std::uint32_t {};
enum class CategoryId : std::uint16_t {};
enum class SliceId : std::uint32_t {};    // row of Trace::slices()
enum class InstantId : std::uint32_t {};  // row of Trace::instants()
enum class ArgsId : std::uint32_t {};     // one event's arguments, see args.h

template <typename Id>
inline constexpr Id kNone = static_cast<Id>(~static_cast<std::underlying_type_t<Id>>(0));

template <typename Id>
constexpr auto raw(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}

}  // namespace lanescope
