#include "lanescope/format/index_file/index_rows.h"

#include <limits>

namespace lanescope::format {
namespace {

// Writes the fields of a row one after the other.
class Put {
 public:
  explicit Put(std::uint64_t* out) : out_(out) {}
  template <typename T>
  Put& field(T value) {
    if constexpr (std::is_enum_v<T>)
      *out_++ = static_cast<std::uint64_t>(raw(value));
    else
      *out_++ = static_cast<std::uint64_t>(value);
    return *this;
  }
  template <typename T>
  Put& field(const std::optional<T>& value) {
    return field(value.has_value()).field(value.value_or(0));
  }
  Put& field(const Scalar& value) {
    return field(value.is_text).field(value.number).field(value.text);
  }

 private:
  std::uint64_t* out_;
};

// Reads them, in the same order.
class Take {
 public:
  explicit Take(const std::uint64_t* in) : in_(in) {}
  template <typename T>
  Take& field(T& value) {
    using Number = typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>,
                                               std::type_identity<T>>::type;
    const std::uint64_t found = *in_++;
    value = static_cast<T>(static_cast<Number>(found));
    fits_ = fits_ && static_cast<std::uint64_t>(static_cast<Number>(value)) == found;
    return *this;
  }
  template <typename T>
  Take& field(std::optional<T>& value) {
    bool has = false;
    T number{};
    field(has).field(number);
    if (has) value = number;
    return *this;
  }
  Take& field(Scalar& value) { return field(value.is_text).field(value.number).field(value.text); }
  bool fits() const { return fits_; }

 private:
  const std::uint64_t* in_;
  bool fits_ = true;
};

template <typename Fields, typename Row>
Fields&& each_field(Fields&& fields, Row& row) {
  using T = std::remove_const_t<Row>;
  if constexpr (std::is_same_v<T, Process>) {
    fields.field(row.pid).field(row.name).field(row.labels).field(row.sort_index);
  } else if constexpr (std::is_same_v<T, Track>) {
    fields.field(row.kind).field(row.process).field(row.tid).field(row.name).field(row.series);
    fields.field(row.sort_index).field(row.device).field(row.stream);
    fields.field(row.first_slice).field(row.slice_count);
  } else if constexpr (std::is_same_v<T, Category>) {
    fields.field(row.text).field(row.kind);
  } else if constexpr (std::is_same_v<T, Step>) {
    fields.field(row.number).field(row.slice);
  } else if constexpr (std::is_same_v<T, ArgShape>) {
    fields.field(row.first_field).field(row.field_count);
  } else {
    static_assert(std::is_same_v<T, ArgField>);
    fields.field(row.key).field(row.type).field(row.is_shared).field(row.base);
  }
  return std::forward<Fields>(fields);
}

template <typename Fields, typename Values>
void each_value(Fields& fields, Values& values) {
  fields.field(values.base_time_ns).field(values.window_start_ns).field(values.window_end_ns);
  fields.field(values.has_window_span).field(values.stats.input_bytes);
  fields.field(values.stats.unpacked_bytes).field(values.stats.events);
}

}  // namespace

void put_row(std::uint64_t* out, const Process& row) { each_field(Put(out), row); }
void put_row(std::uint64_t* out, const Track& row) { each_field(Put(out), row); }
void put_row(std::uint64_t* out, const Category& row) { each_field(Put(out), row); }
void put_row(std::uint64_t* out, const Step& row) { each_field(Put(out), row); }
void put_row(std::uint64_t* out, const ArgShape& row) { each_field(Put(out), row); }
void put_row(std::uint64_t* out, const ArgField& row) { each_field(Put(out), row); }

bool take_row(const std::uint64_t* in, Process& row) { return each_field(Take(in), row).fits(); }
bool take_row(const std::uint64_t* in, Track& row) { return each_field(Take(in), row).fits(); }
bool take_row(const std::uint64_t* in, Category& row) { return each_field(Take(in), row).fits(); }
bool take_row(const std::uint64_t* in, Step& row) { return each_field(Take(in), row).fits(); }
bool take_row(const std::uint64_t* in, ArgShape& row) { return each_field(Take(in), row).fits(); }
bool take_row(const std::uint64_t* in, ArgField& row) { return each_field(Take(in), row).fits(); }

std::array<std::uint64_t, kValuesNumbers> put_values(const TraceValues& values) {
  std::array<std::uint64_t, kValuesNumbers> numbers{};
  Put put(numbers.data());
  each_value(put, values);
  for (std::size_t i = 0; i < kImportIssueCount; ++i) {
    const ImportStats::Counter& counter = values.stats[static_cast<ImportIssue>(i)];
    put.field(counter.count).field(counter.first_offset);
  }
  return numbers;
}

bool take_values(std::span<const std::uint64_t, kValuesNumbers> in, TraceValues& values) {
  Take take(in.data());
  each_value(take, values);
  for (std::size_t i = 0; i < kImportIssueCount; ++i) {
    std::uint64_t count = 0;
    std::optional<std::uint64_t> first;
    take.field(count).field(first);
    if (count > 0) values.stats.count(static_cast<ImportIssue>(i), first, count);
  }
  return take.fits();
}

}  // namespace lanescope::format
