#include "server/admission.h"

#include <gtest/gtest.h>

namespace merope::server {
namespace {

using std::chrono::milliseconds;

constexpr AdmissionFacts kQuiet{
    .draining = false, .time_left = milliseconds(1000), .watchers = 0, .max_watchers = 2, .streams = true};

TEST(Admission, LetsCallsInWhenNothingSpeaksAgainstIt) {
  EXPECT_FALSE(refuse(kQuiet));
}

TEST(Admission, RefusesEverythingWhileDraining) {
  AdmissionFacts facts = kQuiet;
  facts.draining = true;
  EXPECT_EQ(refuse(facts)->code, ErrorCode::kUnavailable);
}

TEST(Admission, RefusesACallThatHasNoTimeLeft) {
  AdmissionFacts facts = kQuiet;
  facts.time_left = milliseconds(49);
  EXPECT_EQ(refuse(facts)->code, ErrorCode::kDeadlineExceeded);
  facts.time_left = milliseconds(50);
  EXPECT_FALSE(refuse(facts));
}

TEST(Admission, CountsOnlyStreamsAgainstTheLimitOfStreams) {
  AdmissionFacts facts = kQuiet;
  facts.watchers = 2;
  EXPECT_EQ(refuse(facts)->code, ErrorCode::kResourceExhausted);
  facts.streams = false;
  EXPECT_FALSE(refuse(facts));
}

}  // namespace
}  // namespace merope::server
