// Writes a trace of any length: the events of a trace that torch.profiler wrote, again and again,
// with times and ids of their own, up to the given number of slices. The text of a copy is that of
// tools/make_bench_trace.py --of; all cores write, so 37 GB take seconds.
//   long_trace OUT.json TRACE.json[.gz] SLICES
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lanescope/base/share_work.h"
#include "lanescope/codec/byte_source.h"
#include "lanescope/codec/unpack.h"

namespace {

using namespace lanescope;

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "long_trace: %s\n", message.c_str());
  std::exit(2);
}

std::string text_of(const std::string& path) {
  auto file = codec::open_file(path);
  if (!file) fail(file.error().message);
  auto source = codec::open_unpacked(*std::move(file));
  if (!source) fail(source.error().message);
  std::string text;
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const auto count = (*source)->read(buffer);
    if (!count) fail(count.error().message);
    if (*count == 0) return text;
    text.append(buffer.data(), *count);
  }
}

// A number that each copy has larger by `step`.
struct Number {
  std::size_t at = 0, size = 0;  // in the text of the events
  std::uint64_t value = 0;
  bool is_time = false;
};

struct Events {
  std::string text;  // without the comma after the last one
  std::vector<Number> numbers;
  std::uint64_t time_step_us = 0, id_step = 0;
  std::size_t slices = 0;

  std::uint64_t in_copy(const Number& number, std::uint64_t copy) const {
    return number.value + copy * (number.is_time ? time_step_us : id_step);
  }
};

void find_numbers(Events& events) {
  constexpr std::array<std::string_view, 5> kKeys = {"ts", "External id", "Ev Idx", "correlation",
                                                     "id"};
  std::uint64_t first_us = ~std::uint64_t{0}, last_us = 0, largest_id = 0;
  const std::string_view text = events.text;
  for (std::size_t colon = text.find("\": "); colon != text.npos;
       colon = text.find("\": ", colon + 1)) {
    const std::size_t quote = text.rfind('"', colon - 1);
    const std::string_view key = text.substr(quote + 1, colon - quote - 1);
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) continue;
    Number number{colon + 3, 0, 0, key == "ts"};
    const auto end =
        std::from_chars(text.data() + number.at, text.data() + text.size(), number.value);
    number.size = static_cast<std::size_t>(end.ptr - text.data()) - number.at;
    if (number.size == 0) continue;
    events.numbers.push_back(number);
    if (number.is_time) {
      first_us = std::min(first_us, number.value);
      last_us = std::max(last_us, number.value);
    } else {
      largest_id = std::max(largest_id, number.value);
    }
  }
  if (last_us == 0) fail("expected events with times, found none");
  events.time_step_us = last_us - first_us + 1000;
  events.id_step = largest_id + 1;
}

struct Template {
  std::string head, tail;
  Events events;
  std::size_t other_slices = 0;  // in the tail
};

std::size_t slices_in(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find("\"ph\": \"X\"", at)) != text.npos; ++at) ++count;
  return count;
}

// The events from the first one to the first row of metadata, or all; the rest stays once.
Template template_of(const std::string& path) {
  const std::string text = text_of(path);
  const std::size_t list = text.find("\"traceEvents\"");
  const std::size_t begin = list == text.npos ? list : text.find("[\n", list);
  const std::size_t metadata = text.find("\"ph\": \"M\"", std::min(begin, text.size()));
  const std::size_t end =
      metadata == text.npos ? text.rfind("\n  }") : text.rfind("\n  },\n", metadata);
  if (begin == text.npos || end == text.npos || end < begin)
    fail("expected events as torch.profiler writes them in " + path);
  Template made;
  made.head = text.substr(0, begin + 2);
  made.events.text = text.substr(begin + 2, end + 4 - begin - 2);
  made.tail = text.substr(end + 4);
  find_numbers(made.events);
  made.events.slices = slices_in(made.events.text);
  made.other_slices = slices_in(made.tail);
  if (made.events.slices == 0) fail("expected slices in " + path);
  return made;
}

// Where the text of the first `slices` slices ends, with the event that has the last one.
std::size_t end_of(const Events& events, std::size_t slices) {
  std::size_t at = 0;
  for (; slices > 0; --slices) at = events.text.find("\"ph\": \"X\"", at) + 1;
  const std::size_t end = events.text.find("\n  },\n", at);
  return end == std::string::npos ? events.text.size() : end + 4;
}

// Calls use(text) for each part of the first `size` bytes of a copy.
template <class Use>
void copy_parts(const Events& events, std::uint64_t copy, std::size_t size, const Use& use) {
  std::size_t done = 0;
  std::array<char, 24> digits;
  for (const Number& number : events.numbers) {
    if (number.at >= size) break;
    use(std::string_view(events.text).substr(done, number.at - done));
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), events.in_copy(number, copy));
    use(std::string_view(digits.data(), static_cast<std::size_t>(end.ptr - digits.data())));
    done = number.at + number.size;
  }
  use(std::string_view(events.text).substr(done, size - done));
}

void write_at(int file, std::string_view text, std::uint64_t offset) {
  while (!text.empty()) {
    const ssize_t count = ::pwrite(file, text.data(), text.size(), static_cast<off_t>(offset));
    if (count <= 0) fail(std::string("cannot write: ") + std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) fail("usage: long_trace OUT.json TRACE.json[.gz] SLICES");
  const Template made = template_of(argv[2]);
  const std::size_t wanted = std::strtoull(argv[3], nullptr, 10);
  if (wanted <= made.other_slices)
    fail("expected more than " + std::to_string(made.other_slices) + " slices");
  const std::size_t slices = wanted - made.other_slices;
  const Events& events = made.events;
  const std::size_t copies = (slices + events.slices - 1) / events.slices;
  const std::size_t last_size = end_of(events, slices - (copies - 1) * events.slices);
  const auto size_of = [&](std::size_t copy) {
    return copy + 1 < copies ? events.text.size() : last_size;
  };

  std::vector<std::uint64_t> sizes(copies);
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  share_work(copies, threads, [&](std::size_t copy) {
    copy_parts(events, copy, size_of(copy),
               [&](std::string_view part) { sizes[copy] += part.size(); });
    sizes[copy] += copy + 1 < copies ? 2 : 0;
  });
  std::vector<std::uint64_t> offsets(copies + 1, made.head.size());
  for (std::size_t i = 0; i < copies; ++i) offsets[i + 1] = offsets[i] + sizes[i];

  const int file = ::open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail(std::string("cannot write ") + argv[1] + ": " + std::strerror(errno));
  write_at(file, made.head, 0);
  share_work(copies, threads, [&](std::size_t copy) {
    std::string text;
    std::uint64_t offset = offsets[copy];
    copy_parts(events, copy, size_of(copy), [&](std::string_view part) {
      text += part;
      if (text.size() < 1 << 20) return;
      write_at(file, text, offset);
      offset += text.size();
      text.clear();
    });
    if (copy + 1 < copies) text += ",\n";
    write_at(file, text, offset);
  });
  write_at(file, made.tail, offsets[copies]);
  if (::close(file) != 0) fail(std::string("cannot write: ") + std::strerror(errno));
  std::printf("%s: %.2f GB, %zu slices\n", argv[1],
              static_cast<double>(offsets[copies] + made.tail.size()) / 1e9, wanted);
}
