#include "lanescope/model/table_schema.h"

#include <array>

namespace lanescope {
namespace {

constexpr std::array kSlices{
    ColumnSchema{"start_ns", "int64", "ns", "Begin, since base_time_ns."},
    ColumnSchema{"dur_ns", "int64", "ns", "Duration, never below 0."},
    ColumnSchema{"name_id", "uint32", "row of names", "The name."},
    ColumnSchema{"track_id", "uint32", "row of tracks", "The thread or stream that it is on."},
    ColumnSchema{"category_id", "uint16", "row of categories", "The category."},
    ColumnSchema{"event_index", "uint32", "count", "Place among all events of the file, from 0."},
    ColumnSchema{"correlation", "int64", "id",
                 "The number that joins a CUDA call and its GPU work; -1: none."},
    ColumnSchema{"external_id", "int64", "id", "The operator's number; -1: none."},
};
constexpr std::array kInstants{
    ColumnSchema{"instant_time_ns", "int64", "ns", "Time, since base_time_ns."},
    ColumnSchema{"instant_name_id", "uint32", "row of names", "The name."},
    ColumnSchema{"instant_track_id", "uint32", "row of tracks", "The track that it is on."},
};
constexpr std::array kCounters{
    ColumnSchema{"counter_time_ns", "int64", "ns", "Time, since base_time_ns."},
    ColumnSchema{"counter_track_id", "uint32", "row of tracks", "The counter's track."},
    ColumnSchema{"counter_value", "float64", "", "The value, in the unit of the file."},
};
constexpr std::array kTracks{
    ColumnSchema{"kind", "str", "", "thread, stream, async or counter."},
    ColumnSchema{"process", "int or str", "", "The process or device, as the file has it."},
    ColumnSchema{"process_name", "str", "", "The name of the process; None: it has none."},
    ColumnSchema{"thread", "int or str", "", "The thread or stream, as the file has it."},
    ColumnSchema{"name", "str", "", "The name of the track; None: it has none."},
    ColumnSchema{"device", "int", "ordinal", "The device of a stream; None: no stream."},
    ColumnSchema{"stream", "int", "id", "The stream's number; None: no stream."},
    ColumnSchema{"first_slice", "int", "row of slices", "The track's first slice."},
    ColumnSchema{"slice_count", "int", "count", "The track's slices, which follow each other."},
};
constexpr std::array kSteps{
    ColumnSchema{"number", "int", "", "N of ProfilerStep#N."},
    ColumnSchema{"slice", "int", "row of slices", "The range of the step."},
};
constexpr std::array kFlows{
    ColumnSchema{"id", "int or str", "id", "The arrow's id, as the file has it."},
    ColumnSchema{"name", "str", "", "The arrow's name; None: it has none."},
    ColumnSchema{"from_track", "int", "row of tracks", "The track on which it begins."},
    ColumnSchema{"from_ns", "int", "ns", "The time at which it begins, since base_time_ns."},
    ColumnSchema{"to_track", "int", "row of tracks", "The track on which it ends."},
    ColumnSchema{"to_ns", "int", "ns", "The time at which it ends, since base_time_ns."},
};
constexpr std::array kImportStats{
    ColumnSchema{"name", "str", "", "What was found: a stable word such as truncated-file."},
    ColumnSchema{"severity", "str", "", "lost, repaired or note."},
    ColumnSchema{"description", "str", "", "The same for people."},
    ColumnSchema{"count", "int", "count", "How often."},
    ColumnSchema{"first_offset", "int", "bytes",
                 "The first case's place in the unpacked file; None: not known."},
};
constexpr std::array kTables{
    TableSchema{"slices", TableForm::kArrays,
                "What has a begin and a duration, in order of track, start, longer first.",
                kSlices},
    TableSchema{"instants", TableForm::kArrays, "Marks without a duration, in order of time.",
                kInstants},
    TableSchema{"counters", TableForm::kArrays, "Samples of counters, in order of track and time.",
                kCounters},
    TableSchema{"tracks", TableForm::kDicts, "The places where slices, marks and samples are.",
                kTracks},
    TableSchema{"steps", TableForm::kTuples, "The training steps, in order of time.", kSteps},
    TableSchema{"flows", TableForm::kTuples, "Whole arrows between tracks, in order of begin.",
                kFlows},
    TableSchema{"import_stats", TableForm::kDicts, "What was odd in the file, if anything was.",
                kImportStats},
};

}  // namespace

std::span<const TableSchema> trace_tables() { return kTables; }

const ColumnSchema* find_array_column(std::string_view name) {
  for (const TableSchema& table : kTables)
    for (const ColumnSchema& column : table.columns)
      if (table.form == TableForm::kArrays && column.name == name) return &column;
  return nullptr;
}

const char* table_form_name(TableForm form) {
  switch (form) {
    case TableForm::kArrays:
      return "arrays";
    case TableForm::kDicts:
      return "dicts";
    case TableForm::kTuples:
      return "tuples";
    case TableForm::kSql:
      return "sql";
  }
  return "sql";
}

}  // namespace lanescope
