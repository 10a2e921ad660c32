// Indexes in memory, for tests and the fuzzer: made of a trace, changed, and made to look whole.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/check.h"
#include "lanescope/format/index_file/index_checksum.h"
#include "lanescope/format/index_file/read_index.h"
#include "lanescope/format/index_file/write_index.h"

namespace lanescope::format::testing_index {

inline std::string index_text(const Trace& trace, const IndexSource& source = {},
                              std::span<const KeptSection> kept = {}) {
  std::string text;
  const auto sink = codec::string_sink(text);
  LANESCOPE_CHECK(write_index_into(trace, source, *sink, kept).has_value());
  return text;
}

// A copy at a multiple of 64, with nothing after it that could be read by mistake.
inline IndexBytes index_bytes(std::string_view text) {
  const std::size_t room = index_aligned(text.size());
  void* const place = std::aligned_alloc(kIndexAlignment, room == 0 ? kIndexAlignment : room);
  LANESCOPE_CHECK(place != nullptr);
  std::memcpy(place, text.data(), text.size());
  return {{static_cast<const std::byte*>(place), text.size()},
          std::shared_ptr<const void>(place, [](const void* at) {
            std::free(const_cast<void*>(at));  // NOLINT: of aligned_alloc
          })};
}

inline Result<Trace> read_text(std::string_view text, IndexCheck check = IndexCheck::kAll) {
  return read_index(index_bytes(text), check);
}

struct IndexHead {
  IndexHeader header{};
  std::vector<IndexSection> sections;
};

// As far as the text has them.
inline IndexHead head_of(std::string_view text) {
  IndexHead head;
  if (text.size() < sizeof(head.header)) return head;
  std::memcpy(&head.header, text.data(), sizeof(head.header));
  const std::size_t room = (text.size() - sizeof(head.header)) / sizeof(IndexSection);
  head.sections.resize(std::min<std::size_t>({head.header.section_count, room, 64}));
  if (head.sections.empty()) return head;  // memcpy takes no null pointer
  std::memcpy(head.sections.data(), text.data() + sizeof(head.header),
              head.sections.size() * sizeof(IndexSection));
  return head;
}

// Makes build, length and checksums right again, so that only the meaning of the rows is wrong.
inline void seal(std::string& text) {
  IndexHead head = head_of(text);
  const std::size_t sum_at = sizeof(IndexHeader) + head.sections.size() * sizeof(IndexSection);
  if (text.size() < sum_at + sizeof(IndexHeadChecksum)) return;
  std::memcpy(head.header.magic, kIndexMagic, sizeof(kIndexMagic));
  head.header.version = kIndexVersion;
  head.header.byte_order = kIndexByteOrder;
  head.header.build = index_build();
  head.header.file_bytes = text.size();
  head.header.section_count = static_cast<std::uint32_t>(head.sections.size());
  for (IndexSection& section : head.sections) {
    if (section.offset > text.size() || section.row_bytes == 0) continue;
    const std::size_t room = text.size() - section.offset;
    if (section.row_count > room / section.row_bytes) continue;
    section.checksum = index_checksum(
        std::string_view(text).substr(section.offset, section.row_count * section.row_bytes));
  }
  std::memcpy(text.data(), &head.header, sizeof(head.header));
  if (!head.sections.empty())
    std::memcpy(text.data() + sizeof(head.header), head.sections.data(),
                head.sections.size() * sizeof(IndexSection));
  const IndexHeadChecksum sum = hash_bytes(std::string_view(text).substr(0, sum_at));
  std::memcpy(text.data() + sum_at, &sum, sizeof(sum));
}

}  // namespace lanescope::format::testing_index
