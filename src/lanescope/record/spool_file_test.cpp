#include "lanescope/record/spool_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
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

// ---- several chunks at once

TEST_F(SpoolDescriptorTest, ChunksMadeTogetherAreNeighboursAndAreClosedAloneOrTogether) {
  auto file = create();
  std::array<spool::ChunkHeader*, 8> made{};
  ASSERT_EQ(file->make_chunks(made), 8u);
  for (std::uint32_t at = 0; at < 8; ++at) {
    EXPECT_EQ(made[at]->number, at);
    EXPECT_EQ(reinterpret_cast<std::byte*>(made[at]),
              reinterpret_cast<std::byte*>(made[0]) + at * spool::kChunkBytes);
    SpoolFile::claim(made[at], spool::ChunkKind::kRecords, 0, at + 1);
  }
  file->seal_chunk(made[2]);
  file->seal_chunk(made[3]);
  file->unmap_chunks(made[2], 2);
  file->close_chunk(made[5]);
  for (const std::uint32_t open : {0u, 1u, 4u, 6u, 7u}) {
    made[open]->thread = open;  // still mapped
    file->close_chunk(made[open]);
  }
  file->finish();
  EXPECT_FALSE(file->is_cut());
  file.reset();
  const std::string recorded = read(path("a.lspool"));
  ASSERT_EQ(recorded.size(), spool::kHeaderBytes + 8 * spool::kChunkBytes);
  for (std::uint32_t at = 0; at < 8; ++at) {
    spool::ChunkHeader header;
    std::memcpy(static_cast<void*>(&header),
                recorded.data() + spool::kHeaderBytes + at * spool::kChunkBytes, sizeof header);
    EXPECT_EQ(header.sequence, at + 1);
    EXPECT_EQ(header.state, spool::ChunkState::kClosed);
  }
}

TEST_F(SpoolDescriptorTest, NearTheSizeLimitFewerChunksAreMadeTogether) {
  auto file =
      SpoolFile::create(path("a.lspool"), spool::kHeaderBytes + 3 * spool::kChunkBytes, nullptr, 0);
  ASSERT_TRUE(file);
  std::array<spool::ChunkHeader*, 8> made{};
  EXPECT_EQ((*file)->make_chunks(made), 3u);
  EXPECT_TRUE((*file)->refusal().empty());
  EXPECT_EQ((*file)->make_chunks(made), 0u);
  EXPECT_THAT((*file)->refusal(), ::testing::HasSubstr("size limit"));
}

TEST_F(SpoolDescriptorTest, WhereThereIsRoomForOneChunkOnlyOneIsMade) {
  auto file = create();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = spool::kHeaderBytes + 2 * spool::kChunkBytes - 1;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::array<spool::ChunkHeader*, 8> made{};
  const std::uint32_t first = file->make_chunks(made), second = file->make_chunks(made);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(second, 0u);
  EXPECT_FALSE(file->refusal().empty());
  EXPECT_FALSE(file->is_cut());
}

}  // namespace
}  // namespace lanescope::record
