#include "lanescope/base/string_pool.h"

#include <cstring>
#include <utility>

namespace lanescope {
namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load(const char* at, std::size_t count) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, count);
  return word;
}

}  // namespace

std::uint64_t hash_bytes(std::string_view text) {
  constexpr std::uint64_t kA = 0x9e3779b97f4a7c15, kB = 0xd6e8feb86659fd93;
  std::uint64_t hash = mix(text.size() ^ kA, kB);
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left > 16; at += 16, left -= 16) hash = mix(load(at, 8) ^ kA ^ hash, load(at + 8, 8) ^ kB);
  if (left > 8) return mix(load(at, 8) ^ kA ^ hash, load(at + 8, left - 8) ^ kB);
  if (left > 0) return mix(load(at, left) ^ kA ^ hash, kB ^ left);
  return hash;
}

StringPool::StringPool() : table_(256, 0) { entries_.reserve(128); }

std::size_t StringPool::slot_of(std::string_view text, std::uint32_t hash) const {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const std::uint32_t index = table_[slot];
    if (index == 0) return slot;
    const Entry& entry = entries_[index - 1];
    if (entry.hash == hash && entry.size == text.size() &&
        (text.empty() || std::memcmp(entry.text, text.data(), text.size()) == 0))
      return slot;
  }
}

StringId StringPool::intern(std::string_view text) {
  const std::uint32_t hash = first_slot(text);
  std::size_t slot = slot_of(text, hash);
  if (table_[slot] != 0) return StringId{table_[slot] - 1};
  if ((entries_.size() + 1) * 2 > table_.size()) {
    grow();
    slot = slot_of(text, hash);
  }
  entries_.push_back({store(text), static_cast<std::uint32_t>(text.size()), hash});
  table_[slot] = static_cast<std::uint32_t>(entries_.size());
  return StringId{static_cast<std::uint32_t>(entries_.size() - 1)};
}

StringId StringPool::find(std::string_view text) const {
  const std::size_t slot = slot_of(text, first_slot(text));
  return table_[slot] == 0 ? kNone<StringId> : StringId{table_[slot] - 1};
}

const char* StringPool::store(std::string_view text) {
  if (text.empty()) return "";
  if (text.size() > block_left_) {
    const std::size_t bytes = text.size() > kBlockBytes / 4 ? text.size() : kBlockBytes;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    block_bytes_ += bytes;
    if (bytes == text.size()) {  // a large text gets a block alone; the shared block stays in use
      std::memcpy(blocks_.back().get(), text.data(), text.size());
      return blocks_.back().get();
    }
    block_at_ = blocks_.back().get();
    block_left_ = bytes;
  }
  char* at = block_at_;
  std::memcpy(at, text.data(), text.size());
  block_at_ += text.size();
  block_left_ -= text.size();
  return at;
}

void StringPool::grow() {
  table_.assign(table_.size() * 2, 0);
  const std::size_t mask = table_.size() - 1;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    std::size_t slot = entries_[i].hash & mask;
    while (table_[slot] != 0) slot = (slot + 1) & mask;
    table_[slot] = i + 1;
  }
}

StringPool::Parts StringPool::take() && {
  Parts parts;
  std::size_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.size;
  parts.bytes.reserve(bytes);
  parts.starts.reserve(entries_.size() + 1);
  for (const Entry& entry : entries_) {
    parts.starts.push_back(parts.bytes.size());
    parts.bytes.insert(parts.bytes.end(), entry.text, entry.text + entry.size);
  }
  parts.starts.push_back(bytes);
  parts.slots = std::move(table_);
  *this = StringPool();
  return parts;
}

std::size_t StringPool::memory_bytes() const {
  return entries_.capacity() * sizeof(Entry) + table_.capacity() * sizeof(std::uint32_t) +
         block_bytes_;
}

}  // namespace lanescope
