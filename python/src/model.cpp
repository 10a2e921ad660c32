// model: a Trace's columns as read-only numpy arrays, most of them views that keep the rows alive;
// small things as Python values.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "bindings.h"
#include "lanescope/base/check.h"
#include "lanescope/model/table_schema.h"

namespace lanescope::python {
namespace {

// Ids show as unsigned integers; absent is the largest one, as in C++.
template <typename T, bool = std::is_enum_v<T>>
struct Element {
  using Type = T;
};
template <typename T>
struct Element<T, true> {
  using Type = std::underlying_type_t<T>;
};

// One array a Trace, kept in its __dict__: two looks at a column give the same object. When several
// threads make it at the same time, the first one stays.
template <typename Make>
py::object made_once(const py::object& self, const char* name, const Make& make) {
  const py::dict kept = self.attr("__dict__");
  if (kept.contains(name)) return kept[name];
  py::array array = make();
  array.attr("setflags")(py::arg("write") = false);
  return kept.attr("setdefault")(name, array);
}

// Of the rows themselves. The array keeps them, not the Python object of the Trace, which keeps the
// array: numpy's arrays take no part in garbage collection, so that circle would never be freed.
template <typename T>
py::array view(const Column<T>& column) {
  using Value = typename Element<T>::Type;
  static_assert(sizeof(Value) == sizeof(T));
  auto rows = std::make_unique<Column<T>>(column);
  const auto* const first = reinterpret_cast<const Value*>(rows->data());
  const auto size = static_cast<py::ssize_t>(rows->size());
  const py::capsule owner(rows.get(), [](void* kept) { delete static_cast<Column<T>*>(kept); });
  (void)rows.release();
  return py::array_t<Value>({size}, {static_cast<py::ssize_t>(sizeof(Value))}, first, owner);
}

template <typename Columns, typename Member>
auto view_of(const Columns& (Trace::*columns)() const, Member Columns::*member) {
  return [columns, member](const py::object& self, const char* name) {
    return made_once(self, name,
                     [&] { return view((self.cast<const Trace&>().*columns)().*member); });
  };
}

// Of a column that holds its values otherwise.
template <typename Value, typename Member>
auto widened(Member SliceColumns::*member) {
  return [member](const py::object& self, const char* name) {
    return made_once(self, name, [&]() -> py::array {
      const auto& column = self.cast<const Trace&>().slices().*member;
      py::array_t<Value> array(static_cast<py::ssize_t>(column.size()));
      Value* const out = array.mutable_data();
      without_gil([&] {
        for (std::size_t i = 0; i < column.size(); ++i) out[i] = static_cast<Value>(column[i]);
      });
      return array;
    });
  };
}

py::object scalar(const Trace& trace, const Scalar& value) {
  if (value.is_text) return to_str(trace.text(value.text));
  return py::int_(value.number);
}

py::object optional_text(const Trace& trace, StringId id) {
  if (id == kNone<StringId>) return py::none();
  return to_str(trace.text(id));
}

const char* track_kind_name(TrackKind kind) {
  switch (kind) {
    case TrackKind::kThread:
      return "thread";
    case TrackKind::kStream:
      return "stream";
    case TrackKind::kAsync:
      return "async";
    case TrackKind::kCounter:
      return "counter";
  }
  return "thread";
}

py::list tracks(const Trace& trace) {
  py::list list;
  for (const Track& track : trace.tracks()) {
    py::dict row;
    row["kind"] = track_kind_name(track.kind);
    const bool has_process = track.process != kNone<ProcessId>;
    row["process"] =
        has_process ? scalar(trace, trace.process(track.process).pid) : py::object(py::none());
    row["process_name"] = has_process ? optional_text(trace, trace.process(track.process).name)
                                      : py::object(py::none());
    row["thread"] = scalar(trace, track.tid);
    row["name"] = optional_text(trace, track.name);
    row["device"] = track.device;
    row["stream"] = track.stream;
    row["first_slice"] = track.first_slice;
    row["slice_count"] = track.slice_count;
    list.append(std::move(row));
  }
  return list;
}

// "<lanescope.Trace: 5165 slices, 12 instants on 3 threads and 2 streams, 4 steps, 12.345 ms>"
py::str repr(const Trace& trace) {
  std::size_t threads = 0, streams = 0;
  for (const Track& track : trace.tracks()) {
    threads += track.kind == TrackKind::kThread && track.slice_count != 0;
    streams += track.kind == TrackKind::kStream;
  }
  const auto counted = [](std::size_t count, const char* one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
  };
  std::string text = "<lanescope.Trace: " + counted(trace.slices().size(), "slice");
  if (trace.instants().size() != 0) text += ", " + counted(trace.instants().size(), "instant");
  if (trace.counters().size() != 0)
    text += ", " + counted(trace.counters().size(), "counter value");
  text += " on " + counted(threads, "thread");
  if (streams != 0) text += " and " + counted(streams, "stream");
  if (!trace.steps().empty()) text += ", " + counted(trace.steps().size(), "step");
  const std::int64_t length_ns = trace.window_end_ns() - trace.window_start_ns();
  return to_str(text + fmt::format(", {:.3f} ms>", static_cast<double>(length_ns) / 1e6));
}

py::list categories(const Trace& trace) {
  py::list list;
  for (const Category& category : trace.categories())
    list.append(to_str(trace.text(category.text)));
  return list;
}

py::list names(const Trace& trace) {
  py::list list(trace.strings().size());
  for (std::size_t i = 0; i < trace.strings().size(); ++i) {
    list[i] = to_str(trace.strings().view(static_cast<StringId>(i)));
  }
  return list;
}

// Text that is JSON as the file had it: parsed where it is valid, else the text.
py::object json_value(std::string_view text) {
  static py::object* const loads =
      new py::object(py::module_::import("json").attr("loads"));  // outlives the module
  try {
    return (*loads)(to_str(text));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_RecursionError)) throw;
    return to_str(text);
  }
}

py::object arg_value(const Trace& trace, const ArgsView& args, const ArgField& field) {
  const std::uint64_t bits = args.bits(field);
  switch (field.type) {
    case ArgType::kNull:
      return py::none();
    case ArgType::kFalse:
      return py::bool_(false);
    case ArgType::kTrue:
      return py::bool_(true);
    case ArgType::kInt32:
    case ArgType::kInt64:
      return py::int_(*args.integer(&field));
    case ArgType::kUint64:
      return py::int_(bits);
    case ArgType::kDouble: {
      double value;
      static_assert(sizeof(value) == sizeof(bits));
      std::memcpy(&value, &bits, sizeof(value));
      return py::float_(value);
    }
    case ArgType::kString:
      return to_str(trace.text(static_cast<StringId>(bits)));
    case ArgType::kJson:
      return json_value(trace.text(static_cast<StringId>(bits)));
  }
  return py::none();
}

py::dict args_dict(const Trace& trace, ArgsId id) {
  py::dict dict;
  const ArgsView args = trace.args(id);
  for (std::size_t i = 0; i < args.size(); ++i) {
    dict[to_str(trace.text(args.field(i).key))] = arg_value(trace, args, args.field(i));
  }
  return dict;
}

std::size_t checked_row(const Trace& trace, std::int64_t row) {
  const auto size = static_cast<std::int64_t>(trace.slices().size());
  if (row < 0) row += size;
  if (row < 0 || row >= size)
    throw py::index_error("slice " + std::to_string(row) + " of " + std::to_string(size));
  return static_cast<std::size_t>(row);
}

// One integer argument of every slice; `missing` where a slice has none.
py::array integer_args(const Trace& trace, const std::string& key, std::int64_t missing) {
  const SliceColumns& slices = trace.slices();
  py::array_t<std::int64_t> array(static_cast<py::ssize_t>(slices.size()));
  std::int64_t* out = array.mutable_data();
  const ArgKey known = arg_key(key);
  const StringId text = trace.strings().find(key);
  without_gil([&] {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const ArgsView args = trace.args(slices.args[i]);
      std::optional<std::int64_t> value;
      if (known != ArgKey::kCount) {
        value = args.integer(known);
      } else if (text != kNone<StringId>) {
        for (std::size_t f = 0; f < args.size(); ++f) {
          if (args.field(f).key == text) value = args.integer(&args.field(f));
        }
      }
      out[i] = value.value_or(missing);
    }
  });
  return array;
}

// The same as a column; -1 where a slice has none.
auto args_of(const char* key) {
  return [key](const py::object& self, const char* name) {
    return made_once(self, name, [&] { return integer_args(self.cast<const Trace&>(), key, -1); });
  };
}

py::list import_stats(const Trace& trace) {
  py::list list;
  for (std::size_t i = 0; i < kImportIssueCount; ++i) {
    const auto issue = static_cast<ImportIssue>(i);
    const ImportStats::Counter& counter = trace.import_stats()[issue];
    if (counter.count == 0) continue;
    const ImportIssueInfo& info = import_issue_info(issue);
    py::dict row;
    row["name"] = info.name;
    row["severity"] = info.severity == Severity::kLost       ? "lost"
                      : info.severity == Severity::kRepaired ? "repaired"
                                                             : "note";
    row["description"] = info.description;
    row["count"] = counter.count;
    row["first_offset"] = counter.first_offset;
    list.append(std::move(row));
  }
  return list;
}

py::list steps(const Trace& trace) {
  py::list list;
  for (const Step& step : trace.steps()) list.append(py::make_tuple(step.number, raw(step.slice)));
  return list;
}

py::dict metadata(const Trace& trace) {
  py::dict dict;
  for (const Metadata& entry : trace.metadata())
    dict[to_str(trace.text(entry.key))] = json_value(trace.text(entry.json));
  return dict;
}

py::list flows(const Trace& trace) {
  py::list list;
  for (const Flow& flow : trace.flows()) {
    list.append(py::make_tuple(scalar(trace, flow.id()), optional_text(trace, flow.name),
                               raw(flow.from_track), flow.from_ns, raw(flow.to_track), flow.to_ns));
  }
  return list;
}

std::string column_text(const ColumnSchema& column) {
  return fmt::format("{} ({}{}{})", column.meaning, column.type, column.unit.empty() ? "" : ", ",
                     column.unit);
}

py::list tables() {
  py::list list;
  for (const TableSchema& table : trace_tables()) {
    py::list columns;
    for (const ColumnSchema& column : table.columns) {
      py::dict row;
      row["name"] = column.name;
      row["type"] = column.type;
      row["unit"] = column.unit;
      row["meaning"] = column.meaning;
      columns.append(std::move(row));
    }
    py::dict row;
    row["name"] = table.name;
    row["form"] = table_form_name(table.form);
    row["meaning"] = table.meaning;
    row["columns"] = std::move(columns);
    list.append(std::move(row));
  }
  return list;
}

}  // namespace

void bind_model(py::module_& m) {
  // With a __dict__, which keeps the arrays below and what sql.cpp has computed.
  py::class_<Trace, std::shared_ptr<Trace>> trace(m, "Trace", py::dynamic_attr());
  trace.def(py::init<>())
      .def("__len__", [](const Trace& t) { return t.slices().size(); })
      .def("__repr__", &repr)
      .def_property_readonly("base_time_ns", &Trace::base_time_ns)
      .def_property_readonly("window_start_ns", &Trace::window_start_ns)
      .def_property_readonly("window_end_ns", &Trace::window_end_ns)
      .def_property_readonly("memory_bytes", &Trace::memory_bytes)
      .def_property_readonly("event_count", [](const Trace& t) { return t.import_stats().events; })
      .def_property_readonly("names", &names)
      .def_property_readonly("categories", &categories)
      .def_property_readonly("tracks", &tracks)
      .def_property_readonly("steps", &steps)
      .def_property_readonly("metadata", &metadata)
      .def_property_readonly("flows", &flows)
      .def_property_readonly("import_stats", &import_stats)
      .def("integer_args", &integer_args, py::arg("key"), py::arg("missing") = -1)
      .def(
          "args",
          [](const Trace& t, std::int64_t row) {
            return args_dict(t, t.slices().args[checked_row(t, row)]);
          },
          py::arg("row"))
      .def(
          "instant_args",
          [](const Trace& t, std::size_t row) {
            if (row >= t.instants().size()) throw py::index_error("instant " + std::to_string(row));
            return args_dict(t, t.instants().args[row]);
          },
          py::arg("row"))
      .def(
          "name",
          [](const Trace& t, std::int64_t row) {
            return to_str(t.text(t.slices().name[checked_row(t, row)]));
          },
          py::arg("row"));
  trace.def_static("tables", &tables, "The tables of a trace: columns, types, units, meaning.");
  // Each array is a column of the schema, which is also its docstring.
  const auto add = [&trace](const char* name, const char* form, auto getter) {
    const ColumnSchema* const column = find_array_column(name);
    LANESCOPE_CHECK(column != nullptr);  // else its row in model/table_schema.cpp is missing
    trace.def_property_readonly(
        name, [name, getter](const py::object& self) { return getter(self, name); },
        (column_text(*column) + form).c_str());
  };
  const char* const is_view = " A read-only view of the rows.";
  const char* const is_made = " Made at the first access, then kept; read-only.";
  add("start_ns", is_view, view_of(&Trace::slices, &SliceColumns::start_ns));
  add("dur_ns", is_made, widened<std::int64_t>(&SliceColumns::dur_ns));
  add("name_id", is_view, view_of(&Trace::slices, &SliceColumns::name));
  add("track_id", is_made, widened<std::uint32_t>(&SliceColumns::track));
  add("category_id", is_view, view_of(&Trace::slices, &SliceColumns::category));
  add("event_index", is_view, view_of(&Trace::slices, &SliceColumns::event_index));
  add("correlation", is_made, args_of("correlation"));
  add("external_id", is_made, args_of("External id"));
  add("instant_time_ns", is_view, view_of(&Trace::instants, &InstantColumns::time_ns));
  add("instant_name_id", is_view, view_of(&Trace::instants, &InstantColumns::name));
  add("instant_track_id", is_view, view_of(&Trace::instants, &InstantColumns::track));
  add("counter_time_ns", is_view, view_of(&Trace::counters, &CounterColumns::time_ns));
  add("counter_track_id", is_view, view_of(&Trace::counters, &CounterColumns::track));
  add("counter_value", is_view, view_of(&Trace::counters, &CounterColumns::value));
}

}  // namespace lanescope::python
