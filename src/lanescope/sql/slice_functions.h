// Perfetto's table functions ancestor_slice(id) and descendant_slice(id): the slices that contain a slice, and the slices inside it.
#pragma once
#include <sqlite3.h>

#include "lanescope/base/result.h"
#include "lanescope/sql/table_data.h"

namespace lanescope::sql {

// Both have the columns of the table of slices. `slices` must outlive the database.
class SliceFunctions {
 public:
  SliceFunctions(TableData& slices, TraceRows& rows)
      : ancestors_{&slices, &rows, true}, descendants_{&slices, &rows, false} {}
  SliceFunctions(const SliceFunctions&) = delete;  // SQLite keeps pointers to the parts
  SliceFunctions& operator=(const SliceFunctions&) = delete;
  ~SliceFunctions() = default;

  Result<void> add_to(sqlite3* database);

  struct Function {
    TableData* slices;
    TraceRows* rows;
    bool of_ancestors;
  };

 private:
  Function ancestors_, descendants_;
};

}  // namespace lanescope::sql
