// Calls a function on each column of a trace's tables, one after the other. This is the only list of
// all columns. The code that moves columns in memory or into a file uses it, so a new column needs one
// line here.
#pragma once
#include "lanescope/model/trace_columns.h"

namespace lanescope {

// Each function calls `with(name, column...)` for each of its columns: `column...` is that column in
// each of `tables`, which may be of different kinds (GrowingColumn, Column). Names are unique in a
// trace and do not change: "slices.start_ns".
//
// The columns that have a row for each slice in every trace.
template <typename With, typename... Tables>
void each_slice_column(With&& with, Tables&... tables) {
  with("slices.start_ns", tables.start_ns...);
  with("slices.short_dur_ns", tables.dur_ns.short_ns...);
  with("slices.name", tables.name...);
  with("slices.track_low", tables.track.low...);
  with("slices.category", tables.category...);
  with("slices.args", tables.args...);
  with("slices.event_index", tables.event_index...);
}

template <typename With, typename... Tables>
void each_instant_column(With&& with, Tables&... tables) {
  with("instants.time_ns", tables.time_ns...);
  with("instants.name", tables.name...);
  with("instants.track", tables.track...);
  with("instants.category", tables.category...);
  with("instants.args", tables.args...);
  with("instants.event_index", tables.event_index...);
  with("instants.scope", tables.scope...);
}

template <typename With, typename... Tables>
void each_counter_column(With&& with, Tables&... tables) {
  with("counters.time_ns", tables.time_ns...);
  with("counters.track", tables.track...);
  with("counters.value", tables.value...);
}

// All columns of TraceTables. Its member `values` is not a column.
template <typename With, typename... Tables>
void each_column(With&& with, Tables&... tables) {
  each_slice_column(with, tables.slices...);
  with("slices.long_dur_ns", tables.slices.dur_ns.long_ns...);
  with("slices.track_high", tables.slices.track.high...);
  each_instant_column(with, tables.instants...);
  each_counter_column(with, tables.counters...);
  with("flows", tables.flows...);
  with("tracks", tables.tracks...);
  with("processes", tables.processes...);
  with("categories", tables.categories...);
  with("steps", tables.steps...);
  with("metadata", tables.metadata...);
  with("other_metadata_events", tables.other_metadata_events...);
  with("api_calls", tables.api_calls...);
  with("args.words", tables.args.words...);
  with("args.variants", tables.args.variants...);
  with("args.shared", tables.args.shared...);
  with("args.shapes", tables.args.shapes...);
  with("args.fields", tables.args.fields...);
  with("strings.bytes", tables.strings.bytes...);
  with("strings.starts", tables.strings.starts...);
  with("strings.slots", tables.strings.slots...);
}

}  // namespace lanescope
