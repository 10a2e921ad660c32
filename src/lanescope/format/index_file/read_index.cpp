#include "lanescope/format/index_file/read_index.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/format/index_file/check_index.h"
#include "lanescope/format/index_file/index_checksum.h"
#include "lanescope/format/index_file/index_rows.h"
#include "lanescope/model/each_column.h"

namespace lanescope::format {
namespace {

constexpr std::size_t kMostFields = 32767;    // ArgShape::slots
constexpr std::size_t kMostArgWords = 65535;  // ArgField::word

Error damaged(std::string found) {
  return {Errc::kCorruptInput, "expected a whole index of lanescope, found " + std::move(found)};
}

class IndexReader {
 public:
  IndexReader(const IndexBytes& index, IndexCheck check)
      : index_(index),
        bytes_(reinterpret_cast<const char*>(index.bytes.data()), index.bytes.size()),
        check_(check) {}

  Result<void> read_head(const IndexSource* source) {
    if (bytes_.size() < sizeof(header_) || !is_index(bytes_)) return damaged("another file");
    std::memcpy(&header_, bytes_.data(), sizeof(header_));
    if (header_.byte_order != kIndexByteOrder || header_.version != kIndexVersion)
      return Error{Errc::kUnsupported, "expected an index of this version, found another one"};
    if (header_.build != index_build())
      return Error{Errc::kUnsupported,
                   "expected an index of this build of lanescope, found one of "
                   "another build"};
    if (header_.file_bytes != bytes_.size()) return damaged("a file of another length");
    if (source && header_.source != *source)
      return Error{Errc::kInvalidArgument,
                   "expected an index of this trace, found one of another or an older trace"};
    return read_sections();
  }

  // What follows the columns.
  Result<void> read_kept(std::vector<KeptSection>* kept) {
    while (next_ != sections_.size()) {
      const IndexSection& section = sections_[next_];
      const std::string name(section.name, strnlen(section.name, sizeof(section.name)));
      LANESCOPE_TRY(const std::string_view rows,
                    next(name, section.row_bytes, std::nullopt, false));
      if (kept) kept->push_back({name, section.row_bytes, std::as_bytes(std::span(rows))});
    }
    return {};
  }

  Result<Trace> read_columns() {
    TraceColumns columns;
    std::array<std::uint64_t, kValuesNumbers> values;
    LANESCOPE_TRY(const std::string_view rows,
                  next("values", sizeof(std::uint64_t), kValuesNumbers, true));
    std::memcpy(values.data(), rows.data(), rows.size());
    if (!take_values(values, columns.values)) return damaged("values that do not fit");
    Result<void> read;
    each_column(
        [&](const char* name, auto& column) {
          if (read) read = read_column(name, column);
        },
        columns);
    if (!read) return read.error();
    if (sections_.size() - next_ > kMostKeptSections)
      return damaged("more columns than a trace has");
    LANESCOPE_TRY_VOID(check_lengths(columns));
    if (check_ == IndexCheck::kAll) LANESCOPE_TRY_VOID(check_index_texts(columns.strings));
    LANESCOPE_TRY_VOID(finish_shapes(columns));
    LANESCOPE_TRY_VOID(check_index_tables(columns));
    if (check_ == IndexCheck::kAll) LANESCOPE_TRY_VOID(check_index_rows(columns));
    return Trace::from_columns(std::move(columns));
  }

 private:
  // Where sections lie follows from their lengths, so nothing overlaps and nothing is left over.
  Result<void> read_sections() {
    const std::uint64_t count = header_.section_count;
    if (count > 1000 || index_head_bytes(count) > bytes_.size())
      return damaged("a file of another length");
    const std::size_t head = sizeof(header_) + count * sizeof(IndexSection);
    IndexHeadChecksum sum = 0;
    std::memcpy(&sum, bytes_.data() + head, sizeof(sum));
    if (sum != hash_bytes(bytes_.substr(0, head))) return damaged("a damaged header");
    const std::uint64_t first = index_head_bytes(count);
    if (bytes_.substr(head + sizeof(sum), first - head - sizeof(sum)).find_first_not_of('\0') !=
        std::string_view::npos)
      return damaged("a damaged header");
    sections_.resize(count);
    if (count != 0)  // memcpy takes no null pointer
      std::memcpy(sections_.data(), bytes_.data() + sizeof(header_), count * sizeof(IndexSection));
    std::uint64_t at = first;
    for (const IndexSection& section : sections_) {
      const std::uint64_t room = bytes_.size() - at;
      if (section.offset != at || section.row_bytes == 0 ||
          section.row_count > room / section.row_bytes)
        return damaged("a column outside of the file");
      const std::uint64_t rows_end = at + section.row_count * section.row_bytes;
      const std::uint64_t end = index_aligned(rows_end);
      if (end > bytes_.size()) return damaged("a column outside of the file");
      const std::string_view between = bytes_.substr(rows_end, end - rows_end);
      if (check_ == IndexCheck::kAll && between.find_first_not_of('\0') != std::string_view::npos)
        return damaged("bytes between columns");
      at = end;
    }
    if (at != bytes_.size()) return damaged("a file of another length");
    return {};
  }

  // The rows of the next section, which must be this one.
  Result<std::string_view> next(std::string_view name, std::uint64_t row_bytes,
                                std::optional<std::uint64_t> row_count, bool always_check) {
    if (next_ == sections_.size()) return damaged("fewer columns than a trace has");
    const IndexSection& section = sections_[next_++];
    char expected[sizeof(section.name)] = {};
    name.copy(expected, sizeof(expected));
    if (std::memcmp(section.name, expected, sizeof(expected)) != 0 ||
        section.row_bytes != row_bytes || (row_count && section.row_count != *row_count))
      return damaged("another column than " + std::string(name));
    const std::string_view rows =
        bytes_.substr(section.offset, section.row_count * section.row_bytes);
    if ((always_check || check_ == IndexCheck::kAll) && index_checksum(rows) != section.checksum)
      return damaged("damage in the column " + std::string(name));
    return rows;
  }

  template <typename T>
  Result<void> read_column(const char* name, Column<T>& column) {
    if constexpr (kRowNumbers<T> == 0) {
      LANESCOPE_TRY(const std::string_view rows, next(name, sizeof(T), std::nullopt, false));
      const auto* const first = reinterpret_cast<const T*>(rows.data());
      column = Column<T>(std::span(first, rows.size() / sizeof(T)), index_.owner);
    } else {
      constexpr std::size_t kNumbers = kRowNumbers<T>;
      LANESCOPE_TRY(const std::string_view rows,
                    next(name, kNumbers * sizeof(std::uint64_t), std::nullopt, true));
      const auto* const numbers = reinterpret_cast<const std::uint64_t*>(rows.data());
      std::vector<T> made(rows.size() / sizeof(std::uint64_t) / kNumbers);
      for (std::size_t i = 0; i < made.size(); ++i)
        if (!take_row(numbers + i * kNumbers, made[i]))
          return damaged("a row that does not fit in " + std::string(name));
      column = Column<T>(std::move(made));
    }
    return {};
  }

  static Result<void> check_lengths(const TraceColumns& columns) {
    bool fit = columns.slices.size() < raw(kNone<SliceId>) &&
               columns.instants.size() < raw(kNone<InstantId>);
    const auto same = [&fit](std::size_t rows) {
      return [&fit, rows](const char*, const auto& column) { fit = fit && column.size() == rows; };
    };
    each_slice_column(same(columns.slices.size()), columns.slices);
    const std::size_t upper = columns.slices.track.high.size();
    fit = fit && (upper == 0 || upper == columns.slices.size());
    each_instant_column(same(columns.instants.size()), columns.instants);
    each_counter_column(same(columns.counters.size()), columns.counters);
    if (!fit) return damaged("columns of one table with different lengths");
    return {};
  }

  // Where the value of a field lies, and the known keys of a shape, follow from keys and types.
  static Result<void> finish_shapes(TraceColumns& columns) {
    std::vector<ArgShape> shapes(columns.args.shapes.begin(), columns.args.shapes.end());
    std::vector<ArgField> fields(columns.args.fields.begin(), columns.args.fields.end());
    std::size_t first = 0;
    std::vector<bool> is_own_int;  // of the event's own words, whether it is all of a kInt32
    for (ArgShape& shape : shapes) {
      if (shape.first_field != first || shape.field_count > kMostFields ||
          shape.field_count > fields.size() - first)
        return damaged("a shape of arguments without its fields");
      first += shape.field_count;
      shape.slots.fill(-1);
      std::size_t own = 0, shared = 0;  // words up to now
      is_own_int.clear();
      for (std::uint32_t i = 0; i < shape.field_count; ++i) {
        ArgField& field = fields[shape.first_field + i];
        if (field.type > ArgType::kJson || raw(field.key) >= columns.strings.size())
          return damaged("an argument without its key or type");
        std::size_t& word = field.is_shared ? shared : own;
        field.word = static_cast<std::uint16_t>(word);
        word += arg_words(field.type);
        if (word > kMostArgWords) return damaged("arguments longer than an event may have");
        if (!field.is_shared) {
          is_own_int.resize(own);
          if (field.type == ArgType::kInt32) is_own_int[field.word] = true;
        }
        if (field.base != ArgField::kNoBase && !(field.is_shared && field.type == ArgType::kInt32 &&
                                                 field.base < own && is_own_int[field.base]))
          return damaged("a difference to another argument than an own number");
        const ArgKey known = arg_key(columns.strings.view(field.key));
        if (known != ArgKey::kCount)
          shape.slots[static_cast<std::size_t>(known)] = static_cast<std::int16_t>(i);
      }
    }
    if (first != fields.size()) return damaged("fields of arguments without a shape");
    columns.args.shapes = Column<ArgShape>(std::move(shapes));
    columns.args.fields = Column<ArgField>(std::move(fields));
    return {};
  }

  const IndexBytes& index_;
  std::string_view bytes_;
  IndexCheck check_;
  IndexHeader header_{};
  std::vector<IndexSection> sections_;
  std::size_t next_ = 0;
};

Result<Trace> read(const IndexBytes& index, const IndexSource* source, IndexCheck check,
                   std::vector<KeptSection>* kept) {
  IndexReader reader(index, check);
  LANESCOPE_TRY_VOID(reader.read_head(source));
  LANESCOPE_TRY(Trace trace, reader.read_columns());
  LANESCOPE_TRY_VOID(reader.read_kept(kept));
  return trace;
}

}  // namespace

bool is_index(std::string_view head) {
  return head.starts_with(std::string_view(kIndexMagic, sizeof(kIndexMagic)));
}

Result<Trace> read_index(const IndexBytes& index, const IndexSource& source, IndexCheck check,
                         std::vector<KeptSection>* kept) {
  return read(index, &source, check, kept);
}

Result<Trace> read_index(const IndexBytes& index, IndexCheck check,
                         std::vector<KeptSection>* kept) {
  return read(index, nullptr, check, kept);
}

}  // namespace lanescope::format
