// Problem: checksums come before the rows, and a large trace's rows should not be copied. Idea:
// make the rows of a section in blocks, twice: once to add up, once to write. Mapped columns are
// handed out where they lie; only small tables are made anew.
#include "lanescope/format/index_file/write_index.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/format/index_file/index_checksum.h"
#include "lanescope/format/index_file/index_rows.h"
#include "lanescope/model/each_column.h"

namespace lanescope::format {
namespace {

std::string_view bytes_of(const void* at, std::size_t count) {
  return {static_cast<const char*>(at), count};
}

// Calls each(std::string_view block), which returns Result<void>, for all blocks of a section.
template <typename Each>
Result<void> each_block(std::string_view rows, const Each& each) {
  for (std::size_t at = 0; at < rows.size(); at += kIndexBlockBytes)
    LANESCOPE_TRY_VOID(each(rows.substr(at, kIndexBlockBytes)));
  return {};
}

class IndexWriter {
 public:
  IndexWriter(const Trace& trace, std::span<const KeptSection> kept)
      : values_(put_values(trace.columns().values)) {
    add("values", sizeof(std::uint64_t), values_.size(), bytes_of(values_.data(), sizeof(values_)));
    each_column([this](const char* name, const auto& column) { add_column(name, column); },
                trace.columns());
    LANESCOPE_CHECK(kept.size() <= kMostKeptSections);
    for (const KeptSection& section : kept)
      add(section.name, section.row_bytes, section.rows.size() / section.row_bytes,
          bytes_of(section.rows.data(), section.rows.size()));
  }

  Result<std::uint64_t> write(const IndexSource& source, codec::ByteSink& sink) {
    std::uint64_t end = index_head_bytes(sections_.size());
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      sections_[i].offset = end;
      sections_[i].checksum = index_checksum(rows_[i]);
      end = index_aligned(end + rows_[i].size());
    }
    LANESCOPE_TRY_VOID(write_head(source, end, sink));
    for (const std::string_view rows : rows_) {
      LANESCOPE_TRY_VOID(
          each_block(rows, [&sink](std::string_view block) { return sink.write(block); }));
      LANESCOPE_TRY_VOID(pad(rows.size(), sink));
    }
    return end;
  }

 private:
  template <typename T>
  void add_column(const char* name, const Column<T>& column) {
    if constexpr (kRowNumbers<T> == 0) {
      static_assert(std::is_same_v<T, double> || std::has_unique_object_representations_v<T>);
      add(name, sizeof(T), column.size(), bytes_of(column.data(), column.size() * sizeof(T)));
    } else {
      constexpr std::size_t kNumbers = kRowNumbers<T>;
      std::vector<std::uint64_t> numbers(column.size() * kNumbers);
      for (std::size_t i = 0; i < column.size(); ++i)
        put_row(numbers.data() + i * kNumbers, column[i]);
      made_.push_back(std::move(numbers));
      const std::size_t size = made_.back().size() * sizeof(std::uint64_t);
      add(name, kNumbers * sizeof(std::uint64_t), column.size(),
          bytes_of(made_.back().data(), size));
    }
  }
  void add(std::string_view name, std::uint64_t row_bytes, std::uint64_t row_count,
           std::string_view rows) {
    IndexSection section{};
    LANESCOPE_CHECK(name.size() < sizeof(section.name));
    name.copy(section.name, name.size());
    section.row_bytes = row_bytes;
    section.row_count = row_count;
    sections_.push_back(section);
    rows_.push_back(rows);
  }
  Result<void> write_head(const IndexSource& source, std::uint64_t file_bytes,
                          codec::ByteSink& sink) const {
    IndexHeader header{};
    std::memcpy(header.magic, kIndexMagic, sizeof(header.magic));
    header.version = kIndexVersion;
    header.byte_order = kIndexByteOrder;
    header.file_bytes = file_bytes;
    header.build = index_build();
    header.source = source;
    header.section_count = static_cast<std::uint32_t>(sections_.size());
    std::string head(bytes_of(&header, sizeof(header)));
    head += bytes_of(sections_.data(), sections_.size() * sizeof(IndexSection));
    const IndexHeadChecksum sum = hash_bytes(head);
    head += bytes_of(&sum, sizeof(sum));
    LANESCOPE_TRY_VOID(sink.write(head));
    return pad(head.size(), sink);
  }
  static Result<void> pad(std::uint64_t size, codec::ByteSink& sink) {
    static constexpr char kZeros[kIndexAlignment] = {};
    return sink.write({kZeros, static_cast<std::size_t>(index_aligned(size) - size)});
  }

  std::array<std::uint64_t, kValuesNumbers> values_;
  std::vector<std::vector<std::uint64_t>> made_;  // small tables as numbers
  std::vector<IndexSection> sections_;
  std::vector<std::string_view> rows_;  // of each section
};

constexpr unsigned kNotForOthersToWrite = 022;

}  // namespace

Result<std::uint64_t> write_index_into(const Trace& trace, const IndexSource& source,
                                       codec::ByteSink& sink, std::span<const KeptSection> kept) {
  return IndexWriter(trace, kept).write(source, sink);
}

Result<std::uint64_t> write_index(const Trace& trace, const IndexSource& source,
                                  const std::filesystem::path& path,
                                  std::span<const KeptSection> kept) {
  LANESCOPE_TRY(const auto sink, codec::create_file(path, kNotForOthersToWrite));
  LANESCOPE_TRY(const std::uint64_t size, write_index_into(trace, source, *sink, kept));
  LANESCOPE_TRY_VOID(sink->finish());
  return size;
}

}  // namespace lanescope::format
