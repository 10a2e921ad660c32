// One value of SQL.
#pragma once
#include <cstdint>
#include <string_view>

namespace lanescope::sql {

enum class CellType : std::uint8_t { kNull, kInteger, kReal, kText, kBlob };

// Texts of a Trace stay valid as long as the Trace; those of a result until its next row.
struct Cell {
  CellType type = CellType::kNull;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text;  // also the bytes of a blob

  static Cell of(std::int64_t value) { return {CellType::kInteger, value, 0, {}}; }
  static Cell of_real(double value) { return {CellType::kReal, 0, value, {}}; }
  static Cell of_text(std::string_view value) { return {CellType::kText, 0, 0, value}; }
};

}  // namespace lanescope::sql
