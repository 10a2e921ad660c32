// The rows of a query as text: an aligned table, CSV or JSON. Each is written while the query
// runs, so memory does not grow with the number of rows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "lanescope/sql/database.h"

namespace lanescope::sql {

enum class ResultForm : std::uint8_t { kTable, kCsv, kJson };

struct ResultOptions {
  ResultForm form = ResultForm::kTable;
  std::optional<std::size_t> row_limit = {};   // of each statement; none: all rows
  std::optional<std::size_t> cell_width = {};  // kTable: longer texts are cut and end in "..."
};

class ResultWriter : public RowSink {
 public:
  // Rows left out by row_limit: there was at least one more.
  virtual bool was_cut() const = 0;
};

// kTable: names, a line of dashes, rows; numbers on the right, NULL as NULL; widths fit the first
// 1,000 rows. kCsv: RFC 4180, one header line, NULL is empty. kJson: a list of objects, a row per line;
// NULL, infinity and NaN are null, a blob is its hexadecimal digits. A second statement begins
// after an empty line, in JSON on the next line. `write` gets whole lines.
std::unique_ptr<ResultWriter> make_result_writer(const ResultOptions& options,
                                                 std::function<void(std::string_view)> write);

}  // namespace lanescope::sql
