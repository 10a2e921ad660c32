#include "spool_text.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "lanescope/codec/activity_layout.h"
#include "lanescope/codec/spool_layout.h"

namespace lanescope::fuzz {
namespace {

using spool::ChunkHeader;
using spool::ChunkKind;
using spool::FileHeader;
using spool::kChunkBytes;
using spool::kChunkHeaderBytes;
using spool::kHeaderBytes;

constexpr std::size_t kMostChunks = 24, kMostBlock = 0xffff;

std::vector<std::string> blocks_of(std::string_view input) {
  std::vector<std::string> blocks;
  for (std::size_t at = 1; at + 2 <= input.size();) {
    const std::size_t size = static_cast<unsigned char>(input[at]) |
                             static_cast<std::size_t>(static_cast<unsigned char>(input[at + 1]))
                                 << 8;
    blocks.emplace_back(input.substr(at + 2, size));
    at += 2 + size;
  }
  return blocks;
}

std::string folded(unsigned char flags, const std::vector<std::string>& blocks) {
  std::string out(1, static_cast<char>(flags));
  for (const std::string& block : blocks) {
    const std::size_t size = std::min(block.size(), kMostBlock);
    out += static_cast<char>(size);
    out += static_cast<char>(size >> 8);
    out.append(block, 0, size);
  }
  return out;
}

template <typename T>
void put(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <typename T>
T get(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void finish_chunk(char* chunk, std::uint32_t number) {
  put(chunk + offsetof(ChunkHeader, magic), spool::kChunkMagic);
  put(chunk + offsetof(ChunkHeader, number), number);
  const auto used = get<std::uint32_t>(chunk + offsetof(ChunkHeader, used));
  put(chunk + offsetof(ChunkHeader, checksum),
      spool::chunk_checksum(static_cast<const std::byte*>(static_cast<const void*>(chunk)), used));
}

std::size_t unit_of(std::uint32_t kind) {
  if (kind == static_cast<std::uint32_t>(ChunkKind::kThreads)) return sizeof(spool::ThreadSlot);
  return kind == static_cast<std::uint32_t>(ChunkKind::kTexts) ? 8 : sizeof(spool::Record);
}

// A field of `size` bytes: at its edges, a small step away, or what another place has.
void change_field(std::string& block, std::size_t at, std::size_t size, std::size_t other,
                  Random& random) {
  if (at + size > block.size()) return;
  std::uint64_t value = 0;
  std::memcpy(&value, block.data() + at, size);
  switch (random.below(4)) {
    case 0:
      value = random.edge();
      break;
    case 1:
      value += random.below(2000) - 1000;
      break;
    case 2:
      value ^= std::uint64_t{1} << random.below(8 * size);
      break;
    default:
      if (other + size <= block.size()) std::memcpy(&value, block.data() + other, size);
  }
  std::memcpy(block.data() + at, &value, size);
}

struct Field {
  std::size_t offset, size;
};

void change_file_header(std::string& block, Random& random) {
  const Field field = random.pick<Field>({{offsetof(FileHeader, layout_version), 4},
                                          {offsetof(FileHeader, pid), 8},
                                          {offsetof(FileHeader, ticks_per_second), 8},
                                          {offsetof(FileHeader, clock), 4},
                                          {offsetof(FileHeader, state), 4},
                                          {offsetof(FileHeader, dropped_without_thread), 8},
                                          {offsetof(FileHeader, process_name), 8},
                                          {offsetof(FileHeader, host_name), 8},
                                          {offsetof(FileHeader, dropped_activities), 8},
                                          {offsetof(FileHeader, ring_lost_until), 8}});
  if (block.size() < sizeof(FileHeader)) block.resize(sizeof(FileHeader));
  if (field.offset == offsetof(FileHeader, layout_version) && !random.one_in(4))
    block[field.offset] = static_cast<char>(1 + random.below(spool::kLayoutVersion + 1));
  else
    change_field(block, field.offset, field.size, field.offset, random);
}

void change_chunk_header(std::string& block, Random& random) {
  const std::size_t field = random.pick(
      {offsetof(ChunkHeader, kind), offsetof(ChunkHeader, thread), offsetof(ChunkHeader, sequence),
       offsetof(ChunkHeader, used), offsetof(ChunkHeader, state)});
  if (block.size() < kChunkHeaderBytes) block.resize(kChunkHeaderBytes);
  if (random.one_in(3))
    change_field(block, field, 4, field, random);
  else
    put(block.data() + field, static_cast<std::uint32_t>(random.below(8)));
}

// One field of a record, with the sizes that records have them in.
void change_record(std::string& block, std::size_t at, std::size_t other, Random& random) {
  const Field field = random.pick<Field>({{0, 8},
                                          {8, 8},
                                          {16, 4},
                                          {20, 1},
                                          {21, 1},
                                          {22, 2},
                                          {24, 8},
                                          {24, 4},
                                          {28, 4},
                                          {32, 4},
                                          {36, 4},
                                          {40, 8},
                                          {40, 4},
                                          {44, 4},
                                          {36, 2},
                                          {38, 2}});
  if (field.offset == offsetof(spool::RecordHead, kind) && !random.one_in(4) &&
      at + 48 <= block.size()) {
    block[at + 20] = static_cast<char>(random.pick(
        {1, 2, 3, 4, 5, 6, 7, 15, 16, 17, 18, 19, 20, 32, 33, 34, 35, 36, 37, 38, 39, 47}));
    return;
  }
  change_field(block, at + field.offset, field.size, other + field.offset, random);
}

void change_text(std::string& block, Random& random) {
  std::vector<std::size_t> starts;
  for (std::size_t at = kChunkHeaderBytes; at + 8 <= block.size();) {
    starts.push_back(at);
    at += (8 + std::size_t{get<std::uint32_t>(block.data() + at + 4)} + 7) / 8 * 8;
  }
  if (starts.empty()) return;
  const std::size_t at = starts[random.below(starts.size())];
  if (random.one_in(3))
    return change_field(block, at, 4, starts[random.below(starts.size())], random);
  if (random.one_in(3)) return change_field(block, at + 4, 4, at + 4, random);
  const std::size_t size = get<std::uint32_t>(block.data() + at + 4);
  for (std::size_t bytes = 1 + random.below(3); bytes > 0 && size > 0; --bytes)
    if (const std::size_t byte = at + 8 + random.below(size); byte < block.size())
      block[byte] = static_cast<char>(random.one_in(2) ? random.next() : random.below(16));
}

// Records, slots or texts of one chunk.
void change_payload(std::string& block, Random& random) {
  if (block.size() <= kChunkHeaderBytes) return change_chunk_header(block, random);
  const auto kind = get<std::uint32_t>(block.data() + offsetof(ChunkHeader, kind));
  if (kind == static_cast<std::uint32_t>(ChunkKind::kTexts)) return change_text(block, random);
  const std::size_t unit = unit_of(kind), count = (block.size() - kChunkHeaderBytes) / unit;
  if (count == 0) return change_chunk_header(block, random);
  const std::size_t at = kChunkHeaderBytes + random.below(count) * unit;
  const std::size_t other = kChunkHeaderBytes + random.below(count) * unit;
  char* const used = block.data() + offsetof(ChunkHeader, used);
  switch (random.below(8)) {
    case 0: {  // again, or a copy of another, and counted
      const std::string copy = block.substr(other, unit);
      put(used, get<std::uint32_t>(used) + 1);
      block.insert(at, copy);
      return;
    }
    case 1:
      put(used, get<std::uint32_t>(used) - 1);
      block.erase(at, unit);
      return;
    case 2:
      std::swap_ranges(block.begin() + static_cast<std::ptrdiff_t>(at),
                       block.begin() + static_cast<std::ptrdiff_t>(at + unit),
                       block.begin() + static_cast<std::ptrdiff_t>(other));
      return;
    default:
      if (kind == static_cast<std::uint32_t>(ChunkKind::kThreads))
        change_field(block, at + 8 * random.below(unit / 8), 8, other, random);
      else
        change_record(block, at, other, random);
  }
}

void change_blocks(std::vector<std::string>& blocks, Random& random) {
  const std::size_t one = random.below(blocks.size()), two = random.below(blocks.size());
  switch (random.below(4)) {
    case 0:
      if (blocks.size() < kMostChunks)
        blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(two), std::string(blocks[one]));
      return;
    case 1:
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(one));
      return;
    default:
      std::swap(blocks[one], blocks[two]);
  }
}

}  // namespace

std::string_view unfold_spool(std::string_view input) {
  if (input.empty()) return {};
  const auto flags = static_cast<unsigned char>(input[0]);
  if (flags & kRawBytes) return input.substr(1);
  // One buffer for all runs; only what was written is cleared again.
  static std::string buffer;
  static std::vector<std::pair<std::size_t, std::size_t>> written;
  for (const auto& [at, size] : written) std::fill_n(buffer.data() + at, size, '\0');
  written.clear();
  std::vector<std::string> blocks = blocks_of(input);
  blocks.resize(std::min(blocks.size(), kMostChunks + 1));
  const std::size_t chunks = blocks.empty() ? 0 : blocks.size() - 1;
  const std::size_t size = kHeaderBytes + chunks * kChunkBytes;
  if (buffer.size() < size) buffer.resize(size);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::size_t at = i == 0 ? 0 : kHeaderBytes + (i - 1) * kChunkBytes;
    const std::size_t count = std::min(blocks[i].size(), i == 0 ? kHeaderBytes : kChunkBytes);
    std::copy_n(blocks[i].data(), count, buffer.data() + at);
    written.emplace_back(at, std::max(count, kChunkHeaderBytes));
    if (flags & kAsItIs) continue;
    if (i == 0)
      std::copy_n(spool::kMagic, sizeof spool::kMagic, buffer.data());
    else
      finish_chunk(buffer.data() + at, static_cast<std::uint32_t>(i - 1));
  }
  std::size_t kept = size;
  if (flags & kCut)
    kept -=
        std::min(size, static_cast<std::size_t>(static_cast<unsigned char>(input.back())) * 1021);
  return std::string_view(buffer).substr(0, kept);
}

std::string mutate_spool(std::string_view input, Random& random) {
  unsigned char flags = input.empty() ? 0 : static_cast<unsigned char>(input[0]);
  std::vector<std::string> blocks = blocks_of(input);
  if (flags & kRawBytes) flags = 0;
  if (random.one_in(32)) flags ^= random.pick<unsigned char>({kAsItIs, kCut, kLive});
  for (std::size_t edits = 1 + random.below(4); edits > 0; --edits) {
    if (blocks.size() < 2) {
      blocks.resize(2, std::string(kChunkHeaderBytes, '\0'));
      change_file_header(blocks[0], random);
    }
    const std::size_t kind = random.below(16);
    if (kind == 0)
      change_file_header(blocks[0], random);
    else if (kind == 1)
      change_blocks(blocks, random);
    else if (kind < 4)
      change_chunk_header(blocks[1 + random.below(blocks.size() - 1)], random);
    else
      change_payload(blocks[1 + random.below(blocks.size() - 1)], random);
  }
  return folded(flags, blocks);
}

}  // namespace lanescope::fuzz
