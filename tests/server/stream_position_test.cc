#include "server/stream_position.h"

#include <gtest/gtest.h>

#include "proto/wire/job_codec.h"

namespace merope::server {
namespace {

using queue::Cursor;
using queue::EventBatch;
using queue::JobState;

std::string progress(std::uint32_t step) {
  return wire::encode_progress(v1::STAGE_DENOISE, step, 10, std::nullopt);
}

EventBatch batch(JobState state, Cursor end, std::vector<queue::StreamEntry> entries) {
  EventBatch result;
  result.entries = std::move(entries);
  result.record.state = state;
  result.record.epoch = end.epoch;
  result.record.last_seq = end.seq;
  return result;
}

TEST(StreamPosition, PassesEntriesOnWithTheirCursors) {
  StreamPosition position("job", {});
  const auto step = position.advance(batch(JobState::kRunning, {1, 2}, {{{1, 1}, progress(1)}, {{1, 2}, progress(2)}}));
  ASSERT_TRUE(step);
  ASSERT_EQ(step->events.size(), 2U);
  EXPECT_EQ(step->events[1].cursor().epoch(), 1U);
  EXPECT_EQ(step->events[1].cursor().seq(), 2U);
  EXPECT_EQ(step->events[1].progress().step(), 2U);
  EXPECT_FALSE(step->complete);
}

TEST(StreamPosition, NoticesAHole) {
  StreamPosition position("job", {1, 2});
  const auto step = position.advance(batch(JobState::kRunning, {1, 4}, {{{1, 4}, progress(4)}}));
  EXPECT_EQ(step.error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(step.error().message, "event 1-3 of job job is missing");
}

TEST(StreamPosition, NoticesThatTheBeginningIsMissing) {
  StreamPosition position("job", {});
  EXPECT_EQ(position.advance(batch(JobState::kRunning, {1, 2}, {{{1, 2}, progress(2)}})).error().code, ErrorCode::kDataLoss);
}

TEST(StreamPosition, TellsARestartOnceAndDropsWhatIsVoid) {
  StreamPosition position("job", {1, 2});
  auto step = position.advance(batch(JobState::kRunning, {2, 1}, {{{1, 3}, progress(3)}, {{2, 1}, progress(1)}}));
  ASSERT_TRUE(step);
  ASSERT_EQ(step->events.size(), 2U);
  EXPECT_EQ(step->events[0].restarted().epoch(), 2U);
  EXPECT_EQ(step->events[0].cursor().epoch(), 2U);
  EXPECT_EQ(step->events[0].cursor().seq(), 0U);
  EXPECT_EQ(step->events[1].progress().step(), 1U);
  step = position.advance(batch(JobState::kRunning, {2, 2}, {{{2, 2}, progress(2)}}));
  EXPECT_EQ(step->events.size(), 1U);
}

TEST(StreamPosition, DoesNotTellARestartToWhoHasNothing) {
  StreamPosition position("job", {});
  const auto step = position.advance(batch(JobState::kRunning, {3, 1}, {{{3, 1}, progress(1)}}));
  ASSERT_EQ(step->events.size(), 1U);
  EXPECT_TRUE(step->events[0].has_progress());
}

TEST(StreamPosition, EndsWithTheWorkersLastWord) {
  StreamPosition position("job", {1, 1});
  const auto step = position.advance(batch(JobState::kSucceeded, {1, 2}, {{{1, 2}, wire::encode_finished({})}}));
  ASSERT_TRUE(step);
  EXPECT_TRUE(step->complete);
  ASSERT_EQ(step->events.size(), 1U);
  EXPECT_TRUE(step->events[0].has_finished());
}

TEST(StreamPosition, SpeaksForAJobThatEndedWithoutAWorker) {
  EventBatch ended = batch(JobState::kExpired, {0, 0}, {});
  ended.record.code = 4;
  ended.record.message = "waited too long";
  StreamPosition position("job", {});
  const auto step = position.advance(ended);
  ASSERT_TRUE(step);
  EXPECT_TRUE(step->complete);
  ASSERT_EQ(step->events.size(), 1U);
  EXPECT_EQ(step->events[0].failed().code(), 4);
  EXPECT_EQ(step->events[0].failed().message(), "waited too long");
}

TEST(StreamPosition, SaysTheLastWordOnlyOnce) {
  EventBatch ended = batch(JobState::kFailed, {1, 1}, {{{1, 1}, wire::encode_failed({ErrorCode::kInternal, "x"})}});
  ended.record.code = 13;
  StreamPosition position("job", {});
  EXPECT_EQ(position.advance(ended)->events.size(), 1U);
}

TEST(StreamPosition, IsSilentAtTheEndOfASuccess) {
  StreamPosition position("job", {1, 2});
  const auto step = position.advance(batch(JobState::kSucceeded, {1, 2}, {}));
  EXPECT_TRUE(step->complete);
  EXPECT_TRUE(step->events.empty());
}

// The job may end between the reading of entries and record: only a second look tells that an entry is gone.
TEST(StreamPosition, LooksTwiceBeforeItSaysThatTheEndIsMissing) {
  StreamPosition position("job", {1, 1});
  auto step = position.advance(batch(JobState::kSucceeded, {1, 2}, {}));
  ASSERT_TRUE(step);
  EXPECT_TRUE(step->read_again);
  StreamPosition lucky = position;
  EXPECT_TRUE(lucky.advance(batch(JobState::kSucceeded, {1, 2}, {{{1, 2}, wire::encode_finished({})}}))->complete);
  EXPECT_EQ(position.advance(batch(JobState::kSucceeded, {1, 2}, {})).error().code, ErrorCode::kDataLoss);
}

TEST(StreamPosition, RefusesACursorBeyondTheEnd) {
  StreamPosition position("job", {1, 9});
  const auto step = position.advance(batch(JobState::kRunning, {1, 2}, {}));
  EXPECT_EQ(step.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(step.error().violations.at(0).field, "after");
}

TEST(StreamPosition, TakesGarbageForLostData) {
  StreamPosition position("job", {});
  EXPECT_EQ(position.advance(batch(JobState::kRunning, {1, 1}, {{{1, 1}, "garbage"}})).error().code, ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace merope::server
