// Writes and reads rows as 64-bit numbers. Rows whose memory has padding, bools or optionals need this,
// because they cannot be mapped from the file. An optional is two numbers: 1 and the value, or 0 and 0.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "lanescope/model/trace_columns.h"

namespace lanescope::format {

// How many numbers a row takes; 0: the column is mapped.
template <typename T>
inline constexpr std::size_t kRowNumbers = 0;
template <>
inline constexpr std::size_t kRowNumbers<Process> = 7;
template <>
inline constexpr std::size_t kRowNumbers<Track> = 15;
template <>
inline constexpr std::size_t kRowNumbers<Category> = 2;
template <>
inline constexpr std::size_t kRowNumbers<Step> = 2;
template <>
inline constexpr std::size_t kRowNumbers<ArgShape> = 2;
template <>
inline constexpr std::size_t kRowNumbers<ArgField> = 4;
// Base time, window (start, end, has a span), sizes (input, unpacked, events), and three numbers
// for each ImportIssue.
inline constexpr std::size_t kValuesNumbers = 7 + 3 * kImportIssueCount;

// Leaves out the slots of an ArgShape and the words of its fields: they follow from keys and types of the fields.
void put_row(std::uint64_t* out, const Process& row);
void put_row(std::uint64_t* out, const Track& row);
void put_row(std::uint64_t* out, const Category& row);
void put_row(std::uint64_t* out, const Step& row);
void put_row(std::uint64_t* out, const ArgShape& row);
void put_row(std::uint64_t* out, const ArgField& row);
std::array<std::uint64_t, kValuesNumbers> put_values(const TraceValues& values);

// False: a number does not fit its field.
[[nodiscard]] bool take_row(const std::uint64_t* in, Process& row);
[[nodiscard]] bool take_row(const std::uint64_t* in, Track& row);
[[nodiscard]] bool take_row(const std::uint64_t* in, Category& row);
[[nodiscard]] bool take_row(const std::uint64_t* in, Step& row);
[[nodiscard]] bool take_row(const std::uint64_t* in, ArgShape& row);
[[nodiscard]] bool take_row(const std::uint64_t* in, ArgField& row);
[[nodiscard]] bool take_values(std::span<const std::uint64_t, kValuesNumbers> in,
                               TraceValues& values);

}  // namespace lanescope::format
