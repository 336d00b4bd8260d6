#include "client/event_checker.h"

#include <gtest/gtest.h>

#include <string>

namespace merope::client {
namespace {

using Verdict = EventChecker::Verdict;

v1::JobEvent at(std::uint64_t epoch, std::uint64_t seq) {
  v1::JobEvent event;
  event.set_job_id("job-1");
  event.mutable_cursor()->set_epoch(epoch);
  event.mutable_cursor()->set_seq(seq);
  return event;
}

v1::JobEvent started(std::uint64_t epoch, std::uint64_t seq = 1) {
  v1::JobEvent event = at(epoch, seq);
  event.mutable_started()->set_epoch(epoch);
  return event;
}

v1::JobEvent fragment(std::uint64_t epoch, std::uint64_t seq, const std::string& data) {
  v1::JobEvent event = at(epoch, seq);
  event.mutable_fragment()->set_data(data);
  return event;
}

v1::JobEvent finished(std::uint64_t epoch, std::uint64_t seq, const std::string& all) {
  v1::JobEvent event = at(epoch, seq);
  event.mutable_finished()->set_bytes(all.size());
  event.mutable_finished()->set_sha256(sha256_hex(all));
  return event;
}

Verdict verdict(EventChecker& checker, const v1::JobEvent& event) {
  const Result<Verdict> result = checker.accept(event);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : Verdict::kRepeat;
}

TEST(EventChecker, VerifiesBytesOfAWholeStream) {
  EventChecker checker;
  EXPECT_EQ(verdict(checker, started(1)), Verdict::kDeliver);
  EXPECT_EQ(verdict(checker, fragment(1, 2, "ab")), Verdict::kDeliver);
  EXPECT_EQ(verdict(checker, fragment(1, 3, "c")), Verdict::kDeliver);
  EXPECT_EQ(verdict(checker, finished(1, 4, "abc")), Verdict::kDeliver);
  EXPECT_TRUE(checker.verified());
  EXPECT_EQ(checker.cursor(), (Cursor{1, 4}));
}

TEST(EventChecker, NamesTheEventThatIsMissing) {
  EventChecker checker;
  ASSERT_TRUE(checker.accept(started(1)));
  const auto hole = checker.accept(fragment(1, 3, "c"));
  ASSERT_FALSE(hole);
  EXPECT_EQ(hole.error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(hole.error().message, "job-1: event 1-2 is missing, 1-3 came instead");
  EventChecker fresh;
  EXPECT_FALSE(fresh.accept(fragment(1, 2, "b"))) << "the first event of an attempt is missing";
}

TEST(EventChecker, RefusesOtherBytesThanTheJobWrote) {
  EventChecker checker;
  ASSERT_TRUE(checker.accept(fragment(1, 1, "abc")));
  const auto wrong_digest = checker.accept(finished(1, 2, "abd"));
  ASSERT_FALSE(wrong_digest);
  EXPECT_EQ(wrong_digest.error().code, ErrorCode::kDataLoss);
  EXPECT_NE(wrong_digest.error().message.find(sha256_hex("abd")), std::string::npos);

  EventChecker shorter;
  ASSERT_TRUE(shorter.accept(fragment(1, 1, "ab")));
  const auto wrong_count = shorter.accept(finished(1, 2, "abc"));
  ASSERT_FALSE(wrong_count);
  EXPECT_EQ(wrong_count.error().message, "job-1: 2 bytes received, Finished says 3");
}

TEST(EventChecker, IgnoresWhatItHasAfterAReattach) {
  EventChecker checker;
  ASSERT_TRUE(checker.accept(started(1)));
  ASSERT_TRUE(checker.accept(fragment(1, 2, "a")));
  EXPECT_EQ(verdict(checker, fragment(1, 2, "a")), Verdict::kRepeat);
  EXPECT_EQ(verdict(checker, started(1)), Verdict::kRepeat);
  EXPECT_EQ(verdict(checker, finished(1, 3, "a")), Verdict::kDeliver);
  EXPECT_TRUE(checker.verified());
}

TEST(EventChecker, ForgetsTheBytesOfALostAttempt) {
  EventChecker checker;
  ASSERT_TRUE(checker.accept(fragment(1, 1, "old")));
  v1::JobEvent restarted = at(2, 0);
  restarted.mutable_restarted()->set_epoch(2);
  EXPECT_EQ(verdict(checker, restarted), Verdict::kDeliver);
  EXPECT_EQ(verdict(checker, restarted), Verdict::kRepeat);
  EXPECT_EQ(verdict(checker, fragment(1, 2, "late")), Verdict::kRepeat) << "a line of the older attempt";
  EXPECT_EQ(verdict(checker, started(2)), Verdict::kDeliver);
  EXPECT_EQ(verdict(checker, fragment(2, 2, "new")), Verdict::kDeliver);
  EXPECT_EQ(verdict(checker, finished(2, 3, "new")), Verdict::kDeliver);
  EXPECT_TRUE(checker.verified());
}

TEST(EventChecker, ANewerAttemptRestartsEvenWhenRestartedGotLost) {
  EventChecker checker;
  EXPECT_EQ(verdict(checker, started(3)), Verdict::kDeliver) << "nothing to drop before the first event";
  EXPECT_EQ(verdict(checker, started(4)), Verdict::kDeliverAfterRestart);
  EventChecker resumed({1, 7});
  EXPECT_EQ(verdict(resumed, started(2)), Verdict::kDeliverAfterRestart) << "the caller holds seven events of epoch 1";
}

TEST(EventChecker, DoesNotClaimToHaveVerifiedWhatItHasNotSeen) {
  EventChecker resumed({1, 2});
  EXPECT_EQ(verdict(resumed, fragment(1, 3, "end")), Verdict::kDeliver);
  EXPECT_EQ(verdict(resumed, finished(1, 4, "begin and end")), Verdict::kDeliver);
  EXPECT_FALSE(resumed.verified());
}

TEST(EventChecker, EventsOfTheServerHaveNoPlaceInTheStream) {
  EventChecker checker;
  v1::JobEvent queued = at(0, 0);
  queued.mutable_queued()->set_place(3);
  EXPECT_EQ(verdict(checker, queued), Verdict::kDeliver);
  EXPECT_EQ(verdict(checker, queued), Verdict::kDeliver) << "the heartbeat of a waiting job is no repeat";
  v1::JobEvent failed = at(0, 0);
  failed.mutable_failed()->set_code(1);
  EXPECT_EQ(verdict(checker, failed), Verdict::kDeliver) << "cancelled before any attempt";
}

}  // namespace
}  // namespace merope::client
