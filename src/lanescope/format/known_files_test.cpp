// One test per kind of file that people give to lanescope by mistake: each message says what was
// expected, what was found and what to do.
#include "lanescope/format/known_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lanescope/format/formats.h"
#include "lanescope/format/read_trace.h"

namespace lanescope::format {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string bytes_of(const char* text, std::size_t size) { return {text, size}; }

// The message for an input of that name, which cannot be read.
std::string message(const std::string& bytes, const char* name = "file") {
  const auto trace = read_trace_bytes(bytes, {}, name);
  EXPECT_FALSE(trace) << bytes.substr(0, 60);
  if (trace) return "";
  EXPECT_THAT(trace.error().message, StartsWith(std::string(name) + ": expected a PyTorch or "));
  EXPECT_NE(trace.error().message.find("; "), std::string::npos)
      << "no advice: " << trace.error().message;
  return trace.error().message;
}

// A local file header of a zip archive with that first member.
std::string zip_of(const std::string& member) {
  std::string head = bytes_of("PK\x03\x04", 4) + std::string(22, '\0');
  head += static_cast<char>(member.size());
  return head + std::string(3, '\0') + member + "content";
}

TEST(KnownFilesTest, AnEmptyFile) {
  EXPECT_THAT(message(""),
              AllOf(HasSubstr("found an empty file (0 bytes)"), HasSubstr("record it again")));
}

TEST(KnownFilesTest, AReportOfNsightSystemsIsKnownByItsName) {
  const std::string bytes = bytes_of("\0\x01\xff\xfe binary", 11);
  for (const char* name : {"report1.nsys-rep", "/data/old.qdrep", "stream.qdstrm"})
    EXPECT_THAT(message(bytes, name), AllOf(HasSubstr("a report of Nsight Systems"),
                                            HasSubstr("open it with Nsight Systems")));
  EXPECT_THAT(message(bytes, "report1.bin"), HasSubstr("binary data (first bytes 00 01 ff fe"));
}

TEST(KnownFilesTest, AnSqliteDatabaseOfNsightSystems) {
  const std::string magic = bytes_of("SQLite format 3\0", 16);
  EXPECT_THAT(
      message(magic + std::string(36'000, '\0') + "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL"),
      AllOf(HasSubstr("an SQLite database of Nsight Systems"), HasSubstr("record")));
}

TEST(KnownFilesTest, OtherSqliteDatabasesAreNamedByTheirTables) {
  const std::string magic = bytes_of("SQLite format 3\0", 16);
  EXPECT_THAT(message(magic),
              HasSubstr("an SQLite database that is not known to be a profiler's; "));
  EXPECT_THAT(
      message(magic + "CREATE TABLE \"users\"(id) CREATE TABLE a\x1b[2J(x)CREATE TABLE orders(id)"),
      HasSubstr("not known to be a profiler's (tables users, a, orders); lanescope reads"));
  EXPECT_THAT(message(magic + "CREATE TABLE rocpd_string(id)"), HasSubstr("rocprof (rocpd)"));
  EXPECT_THAT(message(magic + "CREATE TABLE CANN_API(startNs)"),
              AllOf(HasSubstr("Ascend PyTorch Profiler"), HasSubstr("trace_view.json")));
  EXPECT_THAT(message(magic + "CREATE TABLE \"stack_frame\"(id)"),
              HasSubstr("that lanescope convert wrote"));
}

TEST(KnownFilesTest, AReportOfNsightCompute) {
  EXPECT_THAT(message(bytes_of("NVR\0\x10\0\0\0", 8)), HasSubstr("Nsight Compute (.ncu-rep)"));
}

TEST(KnownFilesTest, AFileThatIsOnlyNamedAsAPerfettoTrace) {
  const std::string no_packet = bytes_of("\x0a\x10\x08\x01\x02\x03", 6);
  EXPECT_THAT(message(no_packet), HasSubstr("looks like protobuf"));
  EXPECT_THAT(message(no_packet, "x.pftrace"), HasSubstr("does not begin like one"));
}

TEST(KnownFilesTest, AnXPlane) {
  EXPECT_THAT(message(bytes_of("\x0a\xa1\xf0\x08\x12\x0e/host:metadata\"\xbf\x14", 23)),
              AllOf(HasSubstr("an XPlane of JAX or TensorFlow"), HasSubstr("trace.json.gz")));
}

TEST(KnownFilesTest, AChakraExecutionTrace) {
  EXPECT_THAT(message(bytes_of("\x07\x0a\x05"
                               "0.0.4\x20\x08\x01",
                               11)),
              HasSubstr("a Chakra execution trace"));
  EXPECT_THAT(message(R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1}]})"),
              AllOf(HasSubstr("a PyTorch or Chakra execution trace"), HasSubstr("record")));
}

TEST(KnownFilesTest, AMemoryTimelineOfTorch) {
  const char* const found = "a JSON array of lists of numbers (torch's export_memory_timeline";
  EXPECT_THAT(message("[[1683, 1684], [[0, 512], [0, 1024]]]"),
              AllOf(HasSubstr(found), HasSubstr("profile_memory=True")));
  EXPECT_THAT(message("[[0, 0, 1234, 3], [5, 2, 1234, 3]]"), HasSubstr(found));
  EXPECT_THAT(message("[[], []]"), HasSubstr(found));
  EXPECT_THAT(message("<html>\n<head><meta charset=\"utf-8\" /><title>GPU Memory Timeline "
                      "HTML</title></head>\n<body>"),
              HasSubstr("a memory timeline of torch (HTML with a picture)"));
}

TEST(KnownFilesTest, AMemorySnapshotOfTorch) {
  const std::string pickle =
      bytes_of("\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94(\x8c\x08segments\x94]", 26);
  EXPECT_THAT(message(pickle), AllOf(HasSubstr("a memory snapshot of PyTorch (a pickle)"),
                                     HasSubstr("pytorch.org/memory_viz")));
  EXPECT_THAT(message(bytes_of("\x80\x05\x95\x04\0", 5)), HasSubstr("a Python pickle"));
  EXPECT_THAT(message(R"({"segments": [], "device_traces": []})"),
              HasSubstr("a memory snapshot of PyTorch"));
}

TEST(KnownFilesTest, WhatRocprofWrites) {
  EXPECT_THAT(message("\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Name\"\n"),
              AllOf(HasSubstr("a table of rocprof (CSV)"), HasSubstr("on ROCm")));
  EXPECT_THAT(message("\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n"),
              HasSubstr("a table of rocprof (CSV)"));
  EXPECT_THAT(message(bytes_of("SQLite format 3\0", 16) + "CREATE TABLE rocpd_string"),
              HasSubstr("an SQLite database of rocprof (rocpd)"));
  EXPECT_THAT(message(R"({"rocprofiler-sdk-tool": [{"metadata": {}}]})"),
              HasSubstr("the JSON of rocprofv3"));
}

TEST(KnownFilesTest, ATraceOfChromeDevToolsIsRead) {
  const auto trace = read_trace_bytes(
      R"({"metadata":{"source":"DevTools"},"traceEvents":[
{"args":{"name":"Renderer"},"cat":"__metadata","name":"process_name","ph":"M","pid":7,"tid":0,"ts":0},
{"args":{"data":{"type":"click"}},"cat":"devtools.timeline","dur":120,"name":"EventDispatch","ph":"X","pid":7,"tdur":90,"tid":1,"ts":5,"tts":3},
{"cat":"loading","id2":{"local":"0x5"},"name":"fetch","ph":"b","pid":7,"tid":1,"ts":6},
{"cat":"loading","id2":{"local":"0x6"},"name":"fetch","ph":"b","pid":7,"tid":1,"ts":7},
{"cat":"loading","id2":{"local":"0x5"},"name":"fetch","ph":"e","pid":7,"tid":1,"ts":9},
{"cat":"loading","id2":{"local":"0x6"},"name":"fetch","ph":"e","pid":7,"tid":1,"ts":20},
{"cat":"disabled-by-default-v8.cpu_profiler","id":"0x1","name":"Other","ph":"P","pid":7,"tid":2,"ts":8}]})");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->slices().size(), 3u);
  EXPECT_EQ(trace->dur_ns(SliceId{1}), 3000);  // two fetches at a time
  EXPECT_EQ(trace->dur_ns(SliceId{2}), 13000);
  EXPECT_EQ(trace->import_stats()[ImportIssue::kWrongType].count, 0u);
  EXPECT_EQ(trace->import_stats()[ImportIssue::kUnknownPhase].count, 1u);  // a sample
}

TEST(KnownFilesTest, Archives) {
  EXPECT_THAT(message(zip_of("trace.json")), HasSubstr("a zip archive; unpack it"));
  EXPECT_THAT(message(zip_of("weights/data.pkl")), HasSubstr("a file of torch.save"));
  std::string tar("trace.json");
  tar.resize(257, '\0');
  EXPECT_THAT(message(tar + "ustar"), HasSubstr("a tar archive; unpack it"));
  EXPECT_THAT(message(bytes_of("\xfd\x37zXZ\0", 6)), HasSubstr("an xz file; unpack it"));
  EXPECT_THAT(message("BZh91AY"), HasSubstr("a bzip2 file; unpack it"));
  EXPECT_THAT(message("7z\xbc\xaf\x27\x1c"), HasSubstr("a 7z archive; unpack it"));
}

TEST(KnownFilesTest, NumpyFiles) {
  EXPECT_THAT(message("\x93NUMPY\x01"), HasSubstr("a NumPy array (.npy)"));
  EXPECT_THAT(message(zip_of("times.npy")), HasSubstr("a NumPy archive (.npz)"));
}

TEST(KnownFilesTest, TextAndPages) {
  EXPECT_THAT(message("step 1: loss 0.3\nstep 2: loss 0.2\n"),
              AllOf(HasSubstr("text that is not JSON: \"step 1: loss 0.3\""),
                    HasSubstr("prof.export_chrome_trace()")));
  EXPECT_THAT(message(" \n\t "), HasSubstr("nothing but blanks"));
  EXPECT_THAT(message("<!DOCTYPE html><html><body>404"), HasSubstr("an HTML page"));
  EXPECT_THAT(message("\xff\xfe{"), HasSubstr("UTF-16 text; store it as UTF-8"));
}

TEST(KnownFilesTest, FilesOfOtherTools) {
  EXPECT_THAT(message(bytes_of("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\xc0\x54\x76\xb8\xda\x41"
                               "\x1a\x0d"
                               "brain.Event:2",
                               36)),
              HasSubstr("an event file of TensorBoard"));
  EXPECT_THAT(message(bytes_of("PERFILE2\0", 9)), HasSubstr("Linux perf"));
  EXPECT_THAT(message("\x7f\x45LF\x02"),
              AllOf(HasSubstr("a program (ELF)"), HasSubstr("record it")));
  EXPECT_THAT(message(R"({"$schema":"https://www.speedscope.app/x.json","profiles":[]})"),
              HasSubstr("a profile of speedscope"));
}

TEST(KnownFilesTest, APackedFileIsNamedByWhatIsInside) {
  // gzip of "SQLite format 3", stored.
  const std::string packed = bytes_of("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x10\0\xef\xff", 15) +
                             bytes_of("SQLite format 3\0", 16);
  EXPECT_THAT(message(packed), HasSubstr("not known to be a profiler's, gzip: "));
  // Cut in its header: the file is not empty, its content is.
  EXPECT_THAT(message(packed.substr(0, 10)),
              HasSubstr("found a gzip file without content: the stream ends early; "));
}

}  // namespace
}  // namespace lanescope::format
