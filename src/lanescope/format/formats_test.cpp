#include "lanescope/format/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "lanescope/codec/spool_layout.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::format {
namespace {
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kRecordingHead(spool::kMagic, sizeof spool::kMagic);

fs::path formats_folder() {
  const fs::path folder =
      fs::path(::testing::TempDir()) / ("lanescope_formats_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  return folder;
}
fs::path file_with(const char* name, const std::string& bytes) {
  const fs::path path = formats_folder() / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(FormatsTest, EachFormatHasAReaderAndEndingsOfItsOwn) {
  std::set<std::string_view> names, endings;
  std::size_t count = 0;
  for (const TraceFormat& format : trace_formats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_FALSE(format.title.empty());
    ASSERT_NE(format.detects, nullptr) << format.name;
    ASSERT_NE(format.read, nullptr) << format.name;
    ASSERT_FALSE(format.endings.empty()) << format.name;
    for (const std::string_view ending : format.endings) {
      EXPECT_TRUE(ending.starts_with('.')) << ending;
      EXPECT_TRUE(endings.insert(ending).second) << ending;
      EXPECT_EQ(find_format_by_ending("a" + std::string(ending)), &format) << ending;
      ++count;
    }
  }
  EXPECT_EQ(format_endings().size(), count);
}

TEST(FormatsTest, TheBytesDecideTheFormat) {
  const auto name_of = [](std::string_view head) {
    const TraceFormat* const format = find_format(head);
    return format ? format->name : "none";
  };
  for (const char* json : {"{", "[", " \n\t{\"a\"", "\xef\xbb\xbf[", "[{\"ph\"", "[[{", "[["})
    EXPECT_EQ(name_of(json), "kineto-json") << json;
  EXPECT_EQ(name_of(kRecordingHead), "lanescope-recording");
  EXPECT_EQ(name_of(std::string_view("\x0a\x04\x40\x05\x50\x01", 6)), "perfetto");
  for (const char* other : {"", " ", "x", "[[1", "[ [ -2", "[[], []]", "(", "\"text\""})
    EXPECT_EQ(name_of(other), "none") << other;
}

TEST(FormatsTest, NoTwoFormatsDetectOneFile) {
  for (const std::string& head : {std::string("{}"), std::string("[]"), kRecordingHead}) {
    int count = 0;
    for (const TraceFormat& format : trace_formats()) count += format.detects(head) ? 1 : 0;
    EXPECT_EQ(count, 1) << head;
  }
}

TEST(FormatsTest, MessagesListEveryFormatWithItsEndings) {
  if (trace_formats().size() == 4) {
    EXPECT_EQ(formats_text(),
              "a PyTorch or Chrome trace (.json, .json.gz, .json.zst), a lanescope recording "
              "(.lspool), a Perfetto trace (.pftrace, .perfetto-trace) or an SQLite export of "
              "Nsight Systems (.sqlite)");
    EXPECT_THAT(format_endings(), ElementsAre(".json", ".json.gz", ".json.zst", ".lspool",
                                              ".pftrace", ".perfetto-trace", ".sqlite"));
  } else {  // built without SQLite
    EXPECT_THAT(format_endings(), ElementsAre(".json", ".json.gz", ".json.zst", ".lspool",
                                              ".pftrace", ".perfetto-trace"));
  }
  EXPECT_THAT(format_endings(Endings::kWritten),
              ElementsAre(".json", ".json.gz", ".json.zst", ".pftrace", ".perfetto-trace"));
  const auto error = read_trace_bytes("no trace");
  ASSERT_FALSE(error);
  EXPECT_THAT(error.error().message, HasSubstr(formats_text()));
}

TEST(FormatsTest, AFileIsDetectedByItsContentAndNotByItsName) {
  EXPECT_EQ(find_format_of_file(file_with("trace.lspool", "{}")), trace_formats().data());
  const TraceFormat* const recording = find_format_of_file(file_with("x.json", kRecordingHead));
  ASSERT_NE(recording, nullptr);
  EXPECT_EQ(recording->name, "lanescope-recording");
  EXPECT_EQ(find_format_of_file(file_with("letter.json", "Dear reader")), nullptr);
  EXPECT_EQ(find_format_of_file(formats_folder()), nullptr);
  EXPECT_EQ(find_format_of_file(formats_folder() / "nowhere.json"), nullptr);
}

TEST(FormatsTest, ARecordingThatIsCompressedOrInAPipeSaysSo) {
  // gzip of the 8 bytes of a recording's head, stored.
  std::string packed("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x08\0\xf7\xff", 15);
  packed += kRecordingHead;
  const auto zipped = read_trace(file_with("packed.lspool.gz", packed));
  ASSERT_FALSE(zipped);
  EXPECT_THAT(zipped.error().message, HasSubstr("found one in a gzip file; unpack it first"));
  const fs::path pipe = formats_folder() / "pipe";
  fs::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::ofstream both(pipe, std::ios::in | std::ios::out | std::ios::binary);  // does not wait
  both << kRecordingHead << std::string(2 * kFormatHeadBytes, '\0') << std::flush;
  const auto piped = read_trace(pipe);
  ASSERT_FALSE(piped);
  EXPECT_THAT(piped.error().message, HasSubstr("found one in a pipe; give its path"));
}

TEST(FormatsTest, WritingFollowsTheEndingAndRefusesWhatIsOnlyRead) {
  testing::Sketch sketch;
  sketch.op("aten::mm", 0, 5);
  const Trace trace = sketch.trace();
  for (const char* name : {"out.json", "out.json.gz", "out.unknown", "out.pftrace"}) {
    const fs::path path = formats_folder() / name;
    const auto written = write_trace(trace, path);
    ASSERT_TRUE(written) << name << ": " << written.error().message;
    const auto again = read_trace(path);
    ASSERT_TRUE(again) << name;
    EXPECT_EQ(again->slices().size(), 1u) << name;
  }
  const fs::path recording = formats_folder() / "out.lspool";
  const auto refused = write_trace(trace, recording);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr(".pftrace, .perfetto-trace, found 'out.lspool'"));
  EXPECT_FALSE(fs::exists(recording));
  const auto packed = write_trace(trace, formats_folder() / "out.pftrace.gz");
  ASSERT_FALSE(packed);
  EXPECT_THAT(packed.error().message, HasSubstr("a file name without .gz"));
}

}  // namespace
}  // namespace lanescope::format
