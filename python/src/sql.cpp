// sql: a query's rows as columns.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings.h"
#if LANESCOPE_HAS_SQL
#include "lanescope/sql/database.h"
#endif

namespace lanescope::python {

#if LANESCOPE_HAS_SQL
namespace {

// Doubles hold whole numbers up to this exactly.
constexpr std::int64_t kMostExact = std::int64_t{1} << 53;

// One column of a result. Equal texts are kept once.
class ResultColumn {
 public:
  void add(const sql::Cell& cell) {
    types_.push_back(cell.type);
    std::int64_t word = cell.integer;
    if (cell.type == sql::CellType::kReal) {
      word = static_cast<std::int64_t>(reals_.size());
      reals_.push_back(cell.real);
    } else if (cell.type == sql::CellType::kText || cell.type == sql::CellType::kBlob) {
      const auto [found, is_new] =
          number_of_.try_emplace(std::string(cell.text), static_cast<std::int64_t>(texts_.size()));
      if (is_new) texts_.push_back(&found->first);
      word = found->second;
    } else if (cell.type == sql::CellType::kInteger) {
      is_exact_ = is_exact_ && word <= kMostExact && word >= -kMostExact;
    }
    words_.push_back(word);
    seen_ |= 1u << static_cast<unsigned>(cell.type);
  }

  // With the GIL. Whole numbers: int64. Numbers with fractions or NULL: float64, NULL is NaN.
  // Anything else, and whole numbers that a float64 cannot hold next to NULL: a list.
  py::object take() const {
    constexpr unsigned kNull = 1u << static_cast<unsigned>(sql::CellType::kNull);
    constexpr unsigned kInteger = 1u << static_cast<unsigned>(sql::CellType::kInteger);
    constexpr unsigned kReal = 1u << static_cast<unsigned>(sql::CellType::kReal);
    const bool is_numbers = (seen_ & ~(kNull | kInteger | kReal)) == 0 && seen_ != kNull;
    if (seen_ == kInteger || seen_ == 0)
      return py::array_t<std::int64_t>(py::ssize_t(words_.size()), words_.data());
    if (is_numbers && is_exact_) return numbers();
    py::list list(words_.size());
    std::vector<py::object> made(texts_.size());
    for (std::size_t i = 0; i < words_.size(); ++i) list[i] = object_at(i, made);
    return list;
  }

 private:
  py::object numbers() const {
    py::array_t<double> array(py::ssize_t(words_.size()));
    double* const out = array.mutable_data();
    for (std::size_t i = 0; i < words_.size(); ++i)
      out[i] = types_[i] == sql::CellType::kNull   ? std::numeric_limits<double>::quiet_NaN()
               : types_[i] == sql::CellType::kReal ? reals_[static_cast<std::size_t>(words_[i])]
                                                   : static_cast<double>(words_[i]);
    return array;
  }

  py::object object_at(std::size_t row, std::vector<py::object>& made) const {
    switch (types_[row]) {
      case sql::CellType::kNull:
        return py::none();
      case sql::CellType::kInteger:
        return py::int_(words_[row]);
      case sql::CellType::kReal:
        return py::float_(reals_[static_cast<std::size_t>(words_[row])]);
      case sql::CellType::kBlob:
        return py::bytes(*texts_[static_cast<std::size_t>(words_[row])]);
      case sql::CellType::kText: {
        py::object& text = made[static_cast<std::size_t>(words_[row])];
        if (!text) text = to_str(*texts_[static_cast<std::size_t>(words_[row])]);
        return text;
      }
    }
    return py::none();
  }

  std::vector<sql::CellType> types_;
  std::vector<std::int64_t> words_;  // the number, or a place in reals_ or texts_
  std::vector<double> reals_;
  std::vector<const std::string*> texts_;
  std::unordered_map<std::string, std::int64_t> number_of_;
  unsigned seen_ = 0;  // one bit a type
  bool is_exact_ = true;
};

// Keeps the rows of the last statement.
class Columns : public sql::RowSink {
 public:
  void begin(const std::vector<std::string>& columns) override {
    names = columns;
    values.assign(columns.size(), ResultColumn());
  }
  bool row(std::span<const sql::Cell> cells) override {
    for (std::size_t i = 0; i < cells.size(); ++i) values[i].add(cells[i]);
    return true;
  }
  std::vector<std::string> names;
  std::vector<ResultColumn> values;
};

// Of two columns with one name, the later ones get a number: "name", "name:1".
py::dict take(const Columns& columns) {
  py::dict dict;
  for (std::size_t i = 0; i < columns.names.size(); ++i) {
    std::string name = columns.names[i];
    for (int again = 1; dict.contains(name.c_str()); ++again)
      name = columns.names[i] + ":" + std::to_string(again);
    dict[to_str(name)] = columns.values[i].take();
  }
  return dict;
}

// Made once a Trace, and kept in its __dict__, so that analyses and indexes stay.
std::shared_ptr<sql::Database> database_of(const py::object& self) {
  if (!py::hasattr(self, "_sql_database")) {
    auto trace = self.cast<std::shared_ptr<Trace>>();
    std::shared_ptr<sql::Database> made = value_or_raise(sql::Database::open(std::move(trace)));
    self.attr("_sql_database") = py::cast(std::move(made));
  }
  return self.attr("_sql_database").cast<std::shared_ptr<sql::Database>>();
}

py::object run_sql(const py::object& self, const std::string& query, const py::object& frame,
                   std::optional<double> timeout) {
  const auto database = database_of(self);
  sql::Limits limits;
  if (timeout) {
    if (!(*timeout > 0) || *timeout > 1e9)
      raise({Errc::kInvalidArgument, "timeout expects seconds, more than 0 and at most 1e9"});
    limits.timeout = std::chrono::nanoseconds(static_cast<std::int64_t>(*timeout * 1e9));
  }
  bool signalled = false;
  auto next_look = std::chrono::steady_clock::now();
  limits.is_stopped = [&] {  // Ctrl-C; looked for 20 times a second, because it needs the GIL
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look) return false;
    next_look = now + std::chrono::milliseconds(50);
    const py::gil_scoped_acquire acquire;
    signalled = PyErr_CheckSignals() != 0;
    return signalled;
  };
  Columns columns;
  const Result<void> done = without_gil([&] { return database->run(query, limits, columns); });
  if (signalled) throw py::error_already_set();
  value_or_raise(done);
  py::dict dict = take(columns);
  if (frame.is_none()) return dict;
  return py::module_::import("lanescope._sql_frames").attr("frame_of")(dict, frame);
}

}  // namespace

void bind_sql(py::module_& m) {
  py::class_<sql::Database, std::shared_ptr<sql::Database>>(m, "SqlDatabase");
  static_cast<py::class_<Trace, std::shared_ptr<Trace>>>(m.attr("Trace"))
      .def("sql", &run_sql, py::arg("query"), py::kw_only(), py::arg("frame") = py::none(),
           py::arg("timeout") = py::none(),
           "The rows of a query in SQL, as columns by name: numpy arrays of int64 or float64 (NULL "
           "is "
           "NaN), lists of str and None else. Of several statements, the last one's. Tables and "
           "units: "
           "docs/formats/sql_tables.md. `frame`: \"pandas\" or \"polars\" gives a data frame. "
           "`timeout`: seconds. Raises InvalidArgumentError (no query, unknown names) and "
           "LimitError.");
  m.def(
      "sql_schema",
      [](const std::string& table) {
        return to_str(value_or_raise(sql::Database::schema_text(table)));
      },
      py::arg("table") = "");
}

#else

void bind_sql(py::module_& m) {
  const auto missing = [] {
    raise({Errc::kUnavailable,
           "expected a lanescope built with SQLite; install libsqlite3-dev and build it again"});
  };
  static_cast<py::class_<Trace, std::shared_ptr<Trace>>>(m.attr("Trace"))
      .def("sql", [missing](const py::object&, const py::args&, const py::kwargs&) { missing(); });
  m.def("sql_schema", [missing](const py::args&, const py::kwargs&) { missing(); });
}

#endif

}  // namespace lanescope::python
