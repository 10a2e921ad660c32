#include "lanescope/record/spool_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace lanescope::record {
namespace {

namespace fs = std::filesystem;

class SpoolDescriptorTest : public ::testing::Test {
 protected:
  SpoolDescriptorTest() {
    std::string name = (fs::temp_directory_path() / "lanescope_spool_file_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~SpoolDescriptorTest() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::unique_ptr<SpoolFile> create() const {
    auto made = SpoolFile::create(path("a.lspool"), 64u << 20, nullptr, 0);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  // Our descriptor of a file, as a program would find it that closes all of them.
  static int descriptor_of(const std::string& path) {
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (fs::read_symlink(entry.path(), gone) == path) return std::stoi(entry.path().filename());
    }
    return -1;
  }
  // A file of the program's own, at that descriptor.
  void open_own_file_at(int descriptor) const {
    std::ofstream(path("own")) << own_;
    const int fd = open(path("own").c_str(), O_RDWR);
    ASSERT_GE(fd, 0);
    if (fd == descriptor) return;
    ASSERT_EQ(dup2(fd, descriptor), descriptor);
    close(fd);
  }
  std::string read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
  const std::string own_ = std::string(4u << 20, 'x');
};

TEST_F(SpoolDescriptorTest, AFileOfTheProgramAtOurDescriptorIsNeitherWrittenNorClosed) {
  auto file = create();
  ASSERT_TRUE(file->make_chunk());
  const int descriptor = descriptor_of(path("a.lspool"));
  ASSERT_GE(descriptor, 3);
  close(descriptor);
  open_own_file_at(descriptor);
  for (int chunk = 0; chunk < 4; ++chunk) {
    spool::ChunkHeader* made = file->make_chunk();
    ASSERT_TRUE(made);
    SpoolFile::claim(made, spool::ChunkKind::kRecords);
    if (chunk % 2 == 0)
      file->close_chunk(made);
    else
      file->return_chunk(made);
  }
  file->give_back(1);
  file->finish();
  EXPECT_FALSE(file->is_cut());
  file.reset();
  EXPECT_NE(fcntl(descriptor, F_GETFD), -1) << "the program's descriptor was closed";
  EXPECT_TRUE(read(path("own")) == own_) << "the program's file was changed";
  const std::string recorded = read(path("a.lspool"));
  EXPECT_EQ(recorded.size(), spool::kHeaderBytes + 3 * spool::kChunkBytes);  // one was reused
  EXPECT_EQ(recorded.compare(0, sizeof spool::kMagic, spool::kMagic, sizeof spool::kMagic), 0);
  close(descriptor);
}

TEST_F(SpoolDescriptorTest, WithoutDescriptorAndNameTheRecordingEndsAndTheProgramsFileStays) {
  auto file = create();
  ASSERT_TRUE(file->make_chunk());
  const int descriptor = descriptor_of(path("a.lspool"));
  fs::remove(path("a.lspool"));
  close(descriptor);
  open_own_file_at(descriptor);
  EXPECT_FALSE(file->make_chunk());
  EXPECT_TRUE(file->is_cut());
  file->finish();
  file.reset();
  EXPECT_NE(fcntl(descriptor, F_GETFD), -1);
  EXPECT_TRUE(read(path("own")) == own_);
  close(descriptor);
}

TEST_F(SpoolDescriptorTest, NeverTakesTheDescriptorsOfTheStandardStreams) {
  const int saved = dup(0);
  close(0);
  auto file = create();
  const int descriptor = descriptor_of(path("a.lspool"));
  dup2(saved, 0);
  close(saved);
  EXPECT_GE(descriptor, 3);
}

}  // namespace
}  // namespace lanescope::record
