#include "lanescope/testing/mapped_trace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "lanescope/base/check.h"
#include "lanescope/model/each_column.h"

namespace lanescope::testing {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void write_at(int file, std::size_t at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    LANESCOPE_CHECK(written > 0);
    at += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

MappedTrace map_trace(const Trace& trace, const std::filesystem::path& folder) {
  std::string path = folder / "lanescope_columns_XXXXXX";
  const int file = mkstemp(path.data());
  LANESCOPE_CHECK(file >= 0);
  unlink(path.c_str());
  std::size_t size = 0;
  each_column(
      [&](const char*, const auto& column) {
        write_at(file, size, std::as_bytes(std::span(column.data(), column.size())));
        size = aligned(size + column.size() * sizeof(column[0]));
      },
      trace.columns());
  size = aligned(size + 1);  // never empty
  LANESCOPE_CHECK(ftruncate(file, static_cast<off_t>(size)) == 0);
  void* const place = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  LANESCOPE_CHECK(place != MAP_FAILED);
  close(file);
  const std::shared_ptr<const void> owner(place,
                                          [place, size](const void*) { munmap(place, size); });

  TraceColumns columns;
  columns.values = trace.columns().values;
  std::size_t at = 0;
  each_column(
      [&]<typename T>(const char*, const Column<T>& from, Column<T>& to) {
        const auto* const rows =
            reinterpret_cast<const T*>(static_cast<const std::byte*>(place) + at);
        to = Column<T>({rows, from.size()}, owner);
        at = aligned(at + from.size() * sizeof(T));
      },
      trace.columns(), columns);
  return {Trace::from_columns(std::move(columns)), {static_cast<const std::byte*>(place), size}};
}

}  // namespace lanescope::testing
