#include "client/fragment_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/ids.h"

namespace merope::client {
namespace {

namespace fs = std::filesystem;

class FragmentStoreTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string content(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  std::size_t n_entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / random_id("fragment");
};

TEST_F(FragmentStoreTest, FileAppearsOnlyWhenCommitted) {
  const fs::path target = folder_ / "clip.mp4";
  std::ofstream(target) << "older clip";
  auto file = open_fragment_file(target.string());
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE((*file)->add("start", true));
  ASSERT_TRUE((*file)->add(" and rest", true));
  EXPECT_EQ(content(target), "older clip");
  ASSERT_TRUE((*file)->commit());
  EXPECT_EQ(content(target), "start and rest");
  EXPECT_EQ(n_entries(), 1U);
}

TEST_F(FragmentStoreTest, AbandonedFileLeavesNothing) {
  {
    auto file = open_fragment_file((folder_ / "clip.mp4").string());
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->add("half", true));
    EXPECT_EQ(n_entries(), 1U) << "the part file beside the target";
  }
  EXPECT_EQ(n_entries(), 0U);
}

TEST_F(FragmentStoreTest, RestartDropsTheOlderAttempt) {
  const fs::path target = folder_ / "clip.mp4";
  auto file = open_fragment_file(target.string());
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->add("a long first attempt", true));
  ASSERT_TRUE((*file)->restart());
  ASSERT_TRUE((*file)->add("second", true));
  ASSERT_TRUE((*file)->commit());
  EXPECT_EQ(content(target), "second");
}

TEST_F(FragmentStoreTest, PathsThatCanNotBeWrittenAreNamedBeforeTheJobRuns) {
  const auto no_folder = open_fragment_file((folder_ / "missing" / "clip.mp4").string());
  ASSERT_FALSE(no_folder);
  EXPECT_EQ(no_folder.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_NE(no_folder.error().message.find("missing/clip.mp4"), std::string::npos);
  EXPECT_FALSE(open_fragment_file(folder_.string())) << "a folder is no clip";
  EXPECT_FALSE(open_fragment_file(""));
}

TEST_F(FragmentStoreTest, FolderHoldsOneFileAFrameAndAppearsAtOnce) {
  const fs::path target = folder_ / "frames";
  auto store = open_fragment_folder(target.string() + "/", ".png");
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE((*store)->add("lost", true));
  ASSERT_TRUE((*store)->add("lost too", false));
  ASSERT_TRUE((*store)->restart());
  ASSERT_TRUE((*store)->add("first ", false));
  ASSERT_TRUE((*store)->add("frame", true));
  ASSERT_TRUE((*store)->add("second frame", true));
  EXPECT_FALSE(fs::exists(target));
  ASSERT_TRUE((*store)->commit());
  EXPECT_EQ(content(target / "frame_00000.png"), "first frame");
  EXPECT_EQ(content(target / "frame_00001.png"), "second frame");
  EXPECT_EQ(std::distance(fs::directory_iterator(target), fs::directory_iterator()), 2);
  EXPECT_EQ(n_entries(), 1U);
}

TEST_F(FragmentStoreTest, FolderWithFilesInItIsNotTouched) {
  const fs::path target = folder_ / "frames";
  fs::create_directories(target);
  EXPECT_TRUE(open_fragment_folder(target.string(), ".png")) << "an empty one may be filled";
  std::ofstream(target / "mine.txt") << "mine";
  EXPECT_FALSE(open_fragment_folder(target.string(), ".png"));
  EXPECT_EQ(content(target / "mine.txt"), "mine");
}

TEST_F(FragmentStoreTest, HalfAFrameIsNotCommitted) {
  auto store = open_fragment_folder((folder_ / "frames").string(), ".png");
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->add("half", false));
  const Status committed = (*store)->commit();
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace merope::client
