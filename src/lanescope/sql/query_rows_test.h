// For the tests of this folder: a query's rows as text.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/sql/database.h"
#include "lanescope/sql/result_text.h"

namespace lanescope::sql {

// CSV without the header line, "\n" between rows; an error as "error: ...".
inline std::string rows_of(Database& database, std::string_view query, const Limits& limits = {}) {
  std::string text;
  const auto writer =
      make_result_writer({.form = ResultForm::kCsv}, [&](std::string_view part) { text += part; });
  if (const auto done = database.run(query, limits, *writer); !done)
    return "error: " + done.error().message;
  std::erase(text, '\r');
  text.erase(0, text.find('\n') + 1);
  return text;
}

inline std::unique_ptr<Database> database_of(Trace trace) {
  return *Database::open(std::make_shared<const Trace>(std::move(trace)));
}

}  // namespace lanescope::sql
