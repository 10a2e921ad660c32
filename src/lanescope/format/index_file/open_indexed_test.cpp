// When an index is used, when it is written, and who may have written it.
#include "lanescope/format/index_file/open_indexed.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/format/index_file/index_helpers_test.h"
#include "lanescope/format/index_file/index_source.h"
#include "lanescope/format/index_file/trace_folder_test.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

namespace fs = std::filesystem;

std::string trace_json(int slices, const char* name = "a") {
  std::string text = R"({"traceEvents": [)";
  for (int i = 0; i < slices; ++i)
    text += std::string(i == 0 ? "" : ",") + R"({"ph": "X", "cat": "cpu_op", "name": ")" + name +
            R"(", "pid": 5, "tid": 5, "ts": )" + std::to_string(i) + R"(, "dur": 1})";
  return text + "]}";
}

class OpenIndexedTest : public TraceFolderTest {
 protected:
  void SetUp() override {
    TraceFolderTest::SetUp();
    write(trace_, trace_json(100));
    options_.cache = IndexCache(folder_ / "cache");
  }
  std::vector<std::string> names_in(const fs::path& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename());
    return names;
  }
  MadeIndex make() {
    auto made = make_index(trace_, {}, options_);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : MadeIndex();
  }
  bool opens_by_index() const { return open_by_index(trace_, options_).has_value(); }
  std::size_t slices(const ReadOptions& read_options = {}) const {
    const auto trace = open_indexed(trace_, read_options, options_);
    EXPECT_TRUE(trace) << trace.error().message;
    return trace ? trace->slices().size() : 0;
  }

  IndexOptions options_;
};

TEST_F(OpenIndexedTest, AnIndexNextToTheTraceIsUsed) {
  EXPECT_FALSE(opens_by_index());
  const MadeIndex made = make();
  EXPECT_EQ(made.path, folder_ / "trace.json.lanescope");
  EXPECT_EQ(made.slices, 100u);
  EXPECT_EQ(made.bytes, fs::file_size(made.path));
  const auto indexed = open_by_index(trace_, options_);
  ASSERT_TRUE(indexed);
  const auto plain = read_trace(trace_);
  ASSERT_TRUE(plain);
  EXPECT_EQ(testing::trace_text(*indexed), testing::trace_text(*plain));
  EXPECT_EQ(indexed->import_stats().input_bytes, plain->import_stats().input_bytes);
  options_.use = IndexUse::kOff;
  EXPECT_EQ(slices(), 100u);
}

TEST_F(OpenIndexedTest, AChangedTraceIsReadAgain) {
  make();
  write(trace_, trace_json(101));  // another size
  EXPECT_FALSE(opens_by_index());
  EXPECT_EQ(slices(), 101u);
  EXPECT_TRUE(opens_by_index());  // the outdated index was replaced
  // The same size and time, another name of the first slice.
  const auto changed = fs::last_write_time(trace_);
  write(trace_, trace_json(101, "b"));
  fs::last_write_time(trace_, changed);
  EXPECT_FALSE(opens_by_index());
  // The same bytes, another time.
  make();
  EXPECT_TRUE(opens_by_index());
  fs::last_write_time(trace_, changed + std::chrono::seconds(1));
  EXPECT_FALSE(opens_by_index());
}

TEST_F(OpenIndexedTest, ADamagedIndexIsReplaced) {
  const MadeIndex made = make();
  const std::string whole = read(made.path);
  for (const std::size_t at : {std::size_t{20}, std::size_t{200}, whole.size() - 70}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write(made.path, damaged);
    EXPECT_FALSE(opens_by_index()) << at;
    EXPECT_EQ(slices(), 100u);
    EXPECT_TRUE(opens_by_index()) << at;
    EXPECT_EQ(read(made.path), whole);
  }
  fs::resize_file(made.path, whole.size() / 2);
  EXPECT_EQ(slices(), 100u);
  EXPECT_TRUE(opens_by_index());
}

TEST_F(OpenIndexedTest, AnIndexOfAnotherBuildIsReplaced) {
  const MadeIndex made = make();
  std::string other = read(made.path);
  other[offsetof(IndexHeader, build)] ^= 1;
  write(made.path, other);
  EXPECT_FALSE(opens_by_index());
  EXPECT_EQ(slices(), 100u);
  EXPECT_TRUE(opens_by_index());
}

// The layout before durations took four bytes and arguments had differences.
TEST_F(OpenIndexedTest, AnIndexOfAnOlderVersionIsReplaced) {
  const MadeIndex made = make();
  const std::string now = read(made.path);
  std::string older = now;
  older[offsetof(IndexHeader, version)] = 3;
  write(made.path, older);
  EXPECT_FALSE(opens_by_index());
  EXPECT_EQ(slices(), 100u);
  EXPECT_TRUE(opens_by_index());
  EXPECT_EQ(read(made.path), now);
}

TEST_F(OpenIndexedTest, OnlyReadingReplacesNothing) {
  const MadeIndex made = make();
  write(made.path, read(made.path).substr(0, 500));
  options_.use = IndexUse::kRead;
  options_.write_from_bytes = 0;
  EXPECT_EQ(slices(), 100u);
  EXPECT_EQ(fs::file_size(made.path), 500u);
  EXPECT_FALSE(fs::exists(options_.cache->index_of(trace_)));
}

TEST_F(OpenIndexedTest, AnotherFileOfThatNameStays) {
  const fs::path index = index_path_of(trace_);
  write(index, std::string(5000, 'x'));
  EXPECT_EQ(slices(), 100u);
  EXPECT_EQ(read(index), std::string(5000, 'x'));
  fs::remove(index);
  ASSERT_EQ(mkfifo(index.c_str(), 0600), 0);  // opening it must not wait
  EXPECT_EQ(slices(), 100u);
}

TEST_F(OpenIndexedTest, LargeTracesAreIndexedInTheCache) {
  options_.write_from_bytes = fs::file_size(trace_) + 1;
  EXPECT_EQ(slices(), 100u);
  EXPECT_FALSE(opens_by_index());
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
  options_.write_from_bytes = fs::file_size(trace_);
  EXPECT_EQ(slices(), 100u);
  EXPECT_TRUE(opens_by_index());
  EXPECT_FALSE(fs::exists(index_path_of(trace_)));
  const auto names = names_in(folder_ / "cache" / "indexes");
  ASSERT_EQ(names.size(), 1u);
  EXPECT_TRUE(names[0].ends_with("-trace.json.lanescope")) << names[0];
  struct stat info {};
  ASSERT_EQ(stat((folder_ / "cache" / "indexes" / names[0]).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 022u, 0u);
}

TEST_F(OpenIndexedTest, ATraceOfManySlicesIsLargeInAnyFormat) {
  options_.write_from_slices = 101;
  EXPECT_EQ(slices(), 100u);
  EXPECT_FALSE(opens_by_index());
  options_.write_from_slices = 100;
  EXPECT_EQ(slices(), 100u);
  EXPECT_TRUE(opens_by_index());
}

TEST_F(OpenIndexedTest, TheCacheKeepsItsLimit) {
  options_.write_from_bytes = 0;
  slices();
  const std::uint64_t one = fs::file_size(options_.cache->index_of(trace_));
  options_.most_cache_bytes = 2 * one + one / 2;
  for (const char* const name : {"b.json", "c.json", "d.json"}) {
    const fs::path old = options_.cache->index_of(trace_);
    trace_ = folder_ / name;
    write(trace_, trace_json(100));
    // Times of files made one after the other may be equal.
    fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(1));
    slices();
    EXPECT_TRUE(opens_by_index());
  }
  EXPECT_EQ(names_in(folder_ / "cache" / "indexes").size(), 2u);
  options_.most_cache_bytes = one / 4;  // too small for any
  trace_ = folder_ / "e.json";
  write(trace_, trace_json(100));
  slices();
  EXPECT_FALSE(opens_by_index());
}

TEST_F(OpenIndexedTest, AFolderThatCannotBeWrittenLeavesTheCache) {
  fs::create_directory(index_path_of(trace_));  // as good as read-only, also for root
  const auto made = make_index(trace_, {}, options_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kIo);
  options_.write_from_bytes = 0;
  EXPECT_EQ(slices(), 100u);
  EXPECT_TRUE(opens_by_index());
}

TEST_F(OpenIndexedTest, WithoutACacheTheTraceIsStillRead) {
  EXPECT_FALSE(IndexCache("/proc/no/such").make());
  const fs::path open_to_all = folder_ / "open_to_all";
  fs::create_directory(open_to_all);
  fs::permissions(open_to_all, fs::perms::all);
  EXPECT_FALSE(IndexCache(open_to_all).make());
  options_.cache.reset();
  options_.write_from_bytes = 0;
  EXPECT_EQ(slices(), 100u);
  make();
  EXPECT_TRUE(opens_by_index());
}

TEST_F(OpenIndexedTest, WhatWasCheckedIsRememberedUntilTheFileChanges) {
  const MadeIndex made = make();
  const auto state = [&] {
    const auto file = open_index_file(made.path);
    return file && options_.cache->was_checked(made.path, *file);
  };
  EXPECT_TRUE(state());  // its writer knows
  std::string text = read(made.path);
  text[text.size() - 70] = static_cast<char>(text[text.size() - 70] ^ 1);
  const auto changed = fs::last_write_time(made.path);
  write(made.path, text);
  fs::last_write_time(made.path, changed);  // the kernel's own time still tells
  EXPECT_FALSE(state());
  EXPECT_FALSE(opens_by_index());
  EXPECT_FALSE(state());
  // A copy of it is another file, and is checked in full once.
  make();
  const std::string whole = read(made.path);
  fs::remove(made.path);
  write(made.path, whole);
  EXPECT_FALSE(state());
  EXPECT_TRUE(opens_by_index());
  EXPECT_TRUE(state());
}

// Sections that a layer above keeps. Format knows bytes only; whether their meaning was checked is
// known by layer, by its build, and by the state of the file.
TEST_F(OpenIndexedTest, WhatALayerKeepsComesBack) {
  const std::vector<std::uint64_t> rows{7, 8, 9};
  const auto opened = [&](std::string layer) {
    KeptSections kept;
    kept.layer = std::move(layer);
    EXPECT_TRUE(open_indexed(trace_, {}, options_, &kept));
    return kept;
  };
  make();
  KeptSections kept = opened("view 1");
  EXPECT_TRUE(kept.sections.empty());
  EXPECT_FALSE(kept.was_checked);
  ASSERT_TRUE(kept.source);
  kept.sections = {{"view.rows", 8, std::as_bytes(std::span(rows))}, {"view.none", 4, {}}};
  const Trace trace = *read_trace(trace_);
  ASSERT_TRUE(keep_in_index(trace_, trace, kept, options_));
  const KeptSections again = opened("view 1");
  ASSERT_EQ(again.sections.size(), 2u);
  EXPECT_EQ(again.sections[0].name, "view.rows");
  EXPECT_EQ(again.sections[0].row_bytes, 8u);
  ASSERT_EQ(again.sections[0].rows.size(), 24u);
  EXPECT_EQ(std::memcmp(again.sections[0].rows.data(), rows.data(), 24), 0);
  EXPECT_TRUE(again.sections[1].rows.empty());
  EXPECT_TRUE(again.was_checked) << "its writer knows";
  EXPECT_FALSE(opened("view 2").was_checked) << "another build makes other rows";
  // A copy is another file. Its columns are checked at once, what a layer keeps only by the layer.
  const fs::path index = index_path_of(trace_);
  const std::string whole = read(index);
  fs::remove(index);
  write(index, whole);
  EXPECT_FALSE(opened("view 1").was_checked);
  const KeptSections known = opened("view 1");
  EXPECT_FALSE(known.was_checked);
  known.remember_checked();
  EXPECT_TRUE(opened("view 1").was_checked);
  // Damage in them is damage of the index.
  std::string damaged = whole;
  damaged[damaged.size() - 64 + 3] = static_cast<char>(damaged[damaged.size() - 64 + 3] ^ 1);
  fs::remove(index);
  write(index, damaged);
  EXPECT_FALSE(opens_by_index());
  // A trace that has changed since is not described by them.
  write(index, whole);
  write(trace_, read(trace_) + " ");
  EXPECT_FALSE(keep_in_index(trace_, trace, kept, options_));
  EXPECT_EQ(read(index), whole);
}

TEST_F(OpenIndexedTest, ALayersNoteIsOfExactlyThisIndex) {
  make();
  const auto note = [this](const std::string& layer) {
    KeptSections kept;
    kept.layer = layer;
    EXPECT_TRUE(open_indexed(trace_, {}, options_, &kept));
    EXPECT_EQ(kept.was_checked, !kept.note.empty());
    return kept;
  };
  EXPECT_EQ(note("info 1").note, "");
  note("info 1").remember_note("100 slices\nand more");
  EXPECT_EQ(note("info 1").note, "100 slices\nand more");
  EXPECT_EQ(note("info 2").note, "");  // another build may say it differently
  EXPECT_EQ(note("view 1").note, "");
  make();  // the same bytes in another file
  EXPECT_EQ(note("info 1").note, "");
  options_.cache.reset();
  note("info 1").remember_note("nowhere");
  EXPECT_EQ(note("info 1").note, "");
}

TEST_F(OpenIndexedTest, WhatALayerKeepsIsWrittenOnlyWhereAnIndexBelongs) {
  const std::vector<std::uint64_t> rows{7};
  KeptSections kept;
  kept.layer = "view 1";
  ASSERT_TRUE(open_indexed(trace_, {}, options_, &kept));
  kept.sections = {{"view.rows", 8, std::as_bytes(std::span(rows))}};
  const Trace trace = *read_trace(trace_);
  options_.write_from_bytes = 1'000'000'000;
  EXPECT_FALSE(keep_in_index(trace_, trace, kept, options_)) << "a small trace without an index";
  EXPECT_FALSE(fs::exists(index_path_of(trace_)));
  make();
  options_.use = IndexUse::kRead;
  EXPECT_FALSE(keep_in_index(trace_, trace, kept, options_));
  options_.use = IndexUse::kAutomatic;
  EXPECT_TRUE(keep_in_index(trace_, trace, kept, options_));
}

TEST_F(OpenIndexedTest, AnIndexThatOthersMayWriteIsCopiedAndCheckedEachTime) {
  const MadeIndex made = make();
  fs::permissions(made.path, fs::perms::group_write, fs::perm_options::add);
  const auto file = open_index_file(made.path);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->is_ours);
  EXPECT_TRUE(opens_by_index());
  EXPECT_FALSE(options_.cache->was_checked(made.path, *file));
  // The Trace does not see what they write later.
  const auto trace = open_by_index(trace_, options_);
  ASSERT_TRUE(trace);
  const std::string before = testing::trace_text(*trace);
  std::string text = read(made.path);
  for (std::size_t at = 3000; at < text.size(); ++at) text[at] = '\x7f';
  const int fd = ::open(made.path.c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  ::close(fd);
  EXPECT_EQ(testing::trace_text(*trace), before);
}

TEST_F(OpenIndexedTest, LimitsOfTheCallerAreKept) {
  // An index that says something else shows which of the two was read.
  const auto other = read_trace_bytes(trace_json(7));
  const auto source = describe_source(trace_);
  ASSERT_TRUE(other && source && *source);
  ASSERT_TRUE(write_index(*other, **source, index_path_of(trace_)));
  EXPECT_EQ(slices(), 7u);
  ReadOptions limited;
  limited.max_event_bytes = 1000;
  EXPECT_EQ(slices(limited), 100u);
}

TEST_F(OpenIndexedTest, ErrorsAreThoseOfReading) {
  const auto missing = open_indexed(folder_ / "nothing.json", {}, options_);
  const auto plain = read_trace(folder_ / "nothing.json");
  ASSERT_TRUE(!missing && !plain);
  EXPECT_EQ(missing.error().message, plain.error().message);
  EXPECT_FALSE(make_index(folder_ / "nothing.json", {}, options_));
  EXPECT_FALSE(make_index(folder_, {}, options_));
}

TEST_F(OpenIndexedTest, ManyWritersLeaveOneWholeIndex) {
  options_.write_from_bytes = 0;
  write(trace_, trace_json(20000));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 4; ++round) {
        if (i % 2 == 0) {
          EXPECT_TRUE(make_index(trace_, {}, options_));
        }
        const auto trace = open_indexed(trace_, {}, options_);
        EXPECT_TRUE(trace && trace->slices().size() == 20000);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(opens_by_index());
  for (const fs::path& folder :
       {folder_, folder_ / "cache" / "indexes", folder_ / "cache" / "checked"})
    for (const std::string& name : names_in(folder))
      EXPECT_EQ(name.find(".partial-"), std::string::npos) << name;
}

TEST_F(OpenIndexedTest, AKilledWriterLeavesNoIndex) {
  const auto trace = read_trace(trace_);
  ASSERT_TRUE(trace);
  const std::string whole = testing_index::index_text(*trace, **describe_source(trace_));
  for (const std::size_t written : {std::size_t{0}, std::size_t{1000}, whole.size()}) {
    const pid_t child = fork();
    if (child == 0) {
      auto sink = codec::create_file(index_path_of(trace_));
      if (sink && (*sink)->write(std::string_view(whole).substr(0, written)))
        ::kill(getpid(), SIGKILL);
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_FALSE(fs::exists(index_path_of(trace_)));
    EXPECT_FALSE(opens_by_index());
    EXPECT_EQ(slices(), 100u);
  }
}

TEST_F(OpenIndexedTest, TheEnvironmentDecides) {
  setenv("XDG_CACHE_HOME", (folder_ / "home").c_str(), 1);
  for (const auto& [word, use] :
       {std::pair("off", IndexUse::kOff), std::pair("read", IndexUse::kRead),
        std::pair("auto", IndexUse::kAutomatic), std::pair("", IndexUse::kAutomatic)}) {
    setenv("LANESCOPE_INDEX", word, 1);
    const auto options = index_options_from_environment();
    ASSERT_TRUE(options);
    EXPECT_EQ(options->use, use);
    EXPECT_EQ(options->cache.has_value(), use != IndexUse::kOff);
  }
  EXPECT_FALSE(fs::exists(folder_ / "home"));  // nothing is made before it is needed
  setenv("LANESCOPE_INDEX", "never", 1);
  const auto wrong = index_options_from_environment();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "LANESCOPE_INDEX: expected off, read or auto, found 'never'");
  unsetenv("LANESCOPE_INDEX");
  unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace lanescope::format
