#include "worker/app/job_runner.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "proto/wire/job_codec.h"
#include "worker/app/conditioning_frames.h"
#include "worker/app/fragment_publisher.h"

namespace merope::worker {
namespace {

v1::Stage wire_stage(Stage stage) {
  switch (stage) {
    case Stage::kPrepare: return v1::STAGE_PREPARE;
    case Stage::kText: return v1::STAGE_TEXT;
    case Stage::kEncode: return v1::STAGE_ENCODE;
    case Stage::kDenoise: return v1::STAGE_DENOISE;
    case Stage::kDecode: return v1::STAGE_DECODE;
  }
  return v1::STAGE_UNSPECIFIED;
}

media::ClipFormat clip_format(OutputFormat output) {
  switch (output) {
    case OutputFormat::kH264: return media::ClipFormat::kH264;
    case OutputFormat::kRgbExact: return media::ClipFormat::kRgbExact;
    case OutputFormat::kPngFrames: return media::ClipFormat::kPngFrames;
  }
  return media::ClipFormat::kH264;
}

// Why an attempt stopped although its job is still ours.
enum class Stop { kNone, kDeadline, kDrain, kNotForUs };

WorkerMetrics::Outcome& counted_as(WorkerMetrics& metrics, JobOutcome outcome) {
  switch (outcome) {
    case JobOutcome::kSucceeded: return metrics.succeeded;
    case JobOutcome::kFailed: return metrics.failed;
    case JobOutcome::kCancelled: return metrics.cancelled;
    case JobOutcome::kReleased:
    case JobOutcome::kNotForUs: return metrics.released;
    case JobOutcome::kLost:
    case JobOutcome::kDeviceLost: break;
  }
  return metrics.lost;
}

void count_loss(WorkerMetrics& metrics, LeaseLoss loss) {
  switch (loss) {
    case LeaseLoss::kNone:
    case LeaseLoss::kCancelled: return;
    case LeaseLoss::kFenced: metrics.lease_fenced.increment(); return;
    case LeaseLoss::kExpired: metrics.lease_expired.increment(); return;
    case LeaseLoss::kStalled: metrics.lease_stalled.increment(); return;
  }
}

}  // namespace

std::string_view to_string(JobOutcome outcome) {
  switch (outcome) {
    case JobOutcome::kSucceeded: return "succeeded";
    case JobOutcome::kFailed: return "failed";
    case JobOutcome::kCancelled: return "cancelled";
    case JobOutcome::kReleased: return "released";
    case JobOutcome::kNotForUs: return "released, not for this worker";
    case JobOutcome::kLost: return "lost";
    case JobOutcome::kDeviceLost: return "left, the device is lost";
  }
  return "unknown";
}

// What the engine reports to, and the state of one attempt.
class JobRunner::Attempt final : public GenerationObserver {
 public:
  Attempt(JobRunner& runner, JobLease& lease)
      : runner_(runner),
        lease_(lease),
        stream_(runner.consumer_, lease, runner.metrics_, runner.options_.retry),
        stage_began_(runner.clock_.now()) {}

  // Everything up to the last fragment. The error says what went wrong; stop() whether we stopped ourselves.
  Status work();
  JobOutcome end(const Status& worked);

  void progress(Stage stage, int step, int steps) override;
  Status may_continue() override;
  Status frames(media::RgbFrames frames) override;

 private:
  Status check();
  JobOutcome finish(queue::JobState state, std::string_view entry, const Error* error, JobOutcome outcome);
  JobOutcome release(JobOutcome outcome);
  void log_end(JobOutcome outcome, const Error* error) const;

  JobRunner& runner_;
  JobLease& lease_;
  StreamWriter stream_;
  std::optional<FragmentPublisher> publisher_;
  wire::FinishedSummary summary_;
  Stop stop_ = Stop::kNone;
  bool engine_failed_ = false;
  Stage stage_ = Stage::kPrepare;
  Clock::TimePoint stage_began_;
};

Status JobRunner::Attempt::check() {
  lease_.advanced();
  MEROPE_RETURN_IF_ERROR(lease_.status());
  if (publisher_) {
    MEROPE_RETURN_IF_ERROR(publisher_->status());
  }
  const Clock::TimePoint now = runner_.clock_.now();
  const auto limit = lease_.job().max_run_time;
  if (limit.count() > 0 && now - lease_.claimed_at() >= limit) {
    stop_ = Stop::kDeadline;
    return Error{
        ErrorCode::kDeadlineExceeded,
        "ran longer than max_run_time (" + std::to_string(limit.count()) + " ms), stopped in stage " + stage_name(stage_)};
  }
  if (const auto deadline = runner_.drain_.deadline()) {
    // A job that can not be done in time is given back now: another worker can begin it sooner.
    const double left = runner_.estimate_.seconds_left().value_or(0);
    if (seconds_between(now, *deadline) <= left) {
      stop_ = Stop::kDrain;
      return Error{ErrorCode::kAborted, "the worker stops"};
    }
  }
  return {};
}

Status JobRunner::Attempt::may_continue() {
  return check();
}

void JobRunner::Attempt::progress(Stage stage, int step, int steps) {
  lease_.advanced();
  stage_ = stage;
  const std::optional<double> took = runner_.estimate_.step_done(stage, step, steps);
  if (stage == Stage::kDenoise && took) {
    runner_.metrics_.denoise_step_seconds.observe(*took);
  }
  log::debug("step done",
             {{"job", lease_.job().job_id}, {"epoch", lease_.job().epoch}, {"stage", stage_name(stage)}, {"step", step}});
  // What stopped the publisher comes back from may_continue().
  (void)publisher_->entry(wire::encode_progress(wire_stage(stage),
                                                static_cast<std::uint32_t>(step),
                                                static_cast<std::uint32_t>(steps),
                                                runner_.estimate_.seconds_left()));
}

Status JobRunner::Attempt::frames(media::RgbFrames frames) {
  lease_.advanced();
  MEROPE_RETURN_IF_ERROR(publisher_->frames(std::move(frames)));
  lease_.advanced();
  return {};
}

Status JobRunner::Attempt::work() {
  const queue::ClaimedJob& claimed = lease_.job();
  auto parsed = wire::parse_stored_job(claimed.spec, claimed.input);
  if (!parsed && parsed.error().code == ErrorCode::kFailedPrecondition) {
    stop_ = Stop::kNotForUs;
  } else if (parsed && parsed->spec.model != runner_.engine_.description().name) {
    stop_ = Stop::kNotForUs;
    return Error{ErrorCode::kFailedPrecondition, "the job wants model " + parsed->spec.model};
  }
  MEROPE_ASSIGN_OR_RETURN(const wire::StoredJob job, std::move(parsed));
  const GenerationSpec& spec = job.spec;
  runner_.estimate_.begin(1.0 * spec.n_frames * spec.width * spec.height);

  MEROPE_RETURN_IF_ERROR(stream_.put(wire::encode_started(runner_.options_.worker, claimed.epoch, claimed.attempt)));
  const Clock::TimePoint prepare = runner_.clock_.now();
  MEROPE_ASSIGN_OR_RETURN(const media::RgbFrames conditioning, decode_conditioning(job, [this] { return check(); }));
  const double prepare_seconds = seconds_between(prepare, runner_.clock_.now());

  media::ClipSettings settings;
  settings.format = clip_format(spec.output);
  settings.width = spec.width;
  settings.height = spec.height;
  settings.fps = spec.fps;
  settings.frames_per_fragment = runner_.options_.frames_per_fragment;
  settings.threads = runner_.options_.encoder_threads;
  publisher_.emplace(stream_, settings, runner_.metrics_);

  MEROPE_RETURN_IF_ERROR(check());
  Result<GenerationReport> report = runner_.engine_.generate(spec, conditioning, *this);
  lease_.advanced();
  if (!report) {
    // The engine hands back what its observer said; only the rest is its own failure.
    MEROPE_RETURN_IF_ERROR(publisher_->status());
    MEROPE_RETURN_IF_ERROR(lease_.status());
    engine_failed_ = stop_ == Stop::kNone;
    return std::move(report).error();
  }
  MEROPE_ASSIGN_OR_RETURN(const PublishedClip clip, publisher_->finish());
  if (clip.n_frames != spec.n_frames) {
    return internal_error("the engine gave " + std::to_string(clip.n_frames) + " of " + std::to_string(spec.n_frames) +
                          " frames");
  }

  bool has_prepare = false;
  for (const auto& [stage, seconds] : report->stage_seconds) {
    const double all = seconds + (stage == Stage::kPrepare ? prepare_seconds : 0);
    has_prepare = has_prepare || stage == Stage::kPrepare;
    summary_.stage_seconds.emplace_back(wire_stage(stage), all);
    runner_.metrics_.stage_seconds(stage).observe(all);
  }
  if (!has_prepare) {
    summary_.stage_seconds.emplace(summary_.stage_seconds.begin(), v1::STAGE_PREPARE, prepare_seconds);
    runner_.metrics_.stage_seconds(Stage::kPrepare).observe(prepare_seconds);
  }
  runner_.metrics_.video_encode_seconds.observe(clip.encode_seconds);
  runner_.metrics_.store_seconds.observe(stream_.seconds());
  summary_.frames = static_cast<std::uint32_t>(clip.n_frames);
  summary_.seed = spec.seed;
  summary_.bytes = clip.bytes;
  summary_.sha256 = clip.sha256;
  return {};
}

JobOutcome JobRunner::Attempt::end(const Status& worked) {
  if (publisher_) {
    publisher_->abandon();
  }
  const LeaseLoss loss = lease_.loss();
  if (loss != LeaseLoss::kNone && loss != LeaseLoss::kCancelled) {
    count_loss(runner_.metrics_, loss);
    const Error error = lease_.status().error();
    log_end(JobOutcome::kLost, &error);
    return JobOutcome::kLost;
  }
  if (loss == LeaseLoss::kCancelled) {
    const Error error{ErrorCode::kCancelled, "cancelled by the client"};
    return finish(queue::JobState::kCancelled, wire::encode_failed(error), &error, JobOutcome::kCancelled);
  }
  if (worked) {
    return finish(queue::JobState::kSucceeded, wire::encode_finished(summary_), nullptr, JobOutcome::kSucceeded);
  }
  if (stop_ == Stop::kDrain) {
    return release(JobOutcome::kReleased);
  }
  if (stop_ == Stop::kNotForUs) {
    return release(JobOutcome::kNotForUs);
  }
  Error error = worked.error();
  if (engine_failed_ && error.code == ErrorCode::kUnavailable) {
    // The lease runs out, which counts as an attempt: a job that breaks devices ends as poison.
    log_end(JobOutcome::kDeviceLost, &error);
    return JobOutcome::kDeviceLost;
  }
  return finish(queue::JobState::kFailed, wire::encode_failed(error), &error, JobOutcome::kFailed);
}

JobOutcome JobRunner::Attempt::finish(queue::JobState state,
                                      std::string_view entry,
                                      const Error* error,
                                      JobOutcome outcome) {
  const Result<queue::LeaseAnswer> answer = stream_.finish(
      state, entry, error == nullptr ? 0 : static_cast<std::int32_t>(error->code), error == nullptr ? "" : error->message);
  if (!answer) {
    log::error("end of the job was refused by the queue",
               {{"job", lease_.job().job_id}, {"epoch", lease_.job().epoch}, {"reason", answer.error().message}});
    outcome = JobOutcome::kLost;
  } else if (*answer == queue::LeaseAnswer::kFenced) {
    count_loss(runner_.metrics_, lease_.loss());
    outcome = JobOutcome::kLost;
  } else if (*answer == queue::LeaseAnswer::kCancelled) {
    outcome = JobOutcome::kCancelled;
  }
  log_end(outcome, error);
  return outcome;
}

JobOutcome JobRunner::Attempt::release(JobOutcome outcome) {
  const Result<queue::LeaseAnswer> answer = stream_.release();
  if (answer && *answer == queue::LeaseAnswer::kCancelled) {
    outcome = JobOutcome::kCancelled;
  } else if (!answer || *answer == queue::LeaseAnswer::kFenced) {
    outcome = JobOutcome::kLost;
  }
  log_end(outcome, nullptr);
  return outcome;
}

void JobRunner::Attempt::log_end(JobOutcome outcome, const Error* error) const {
  const queue::ClaimedJob& job = lease_.job();
  const double run_seconds = seconds_between(lease_.claimed_at(), runner_.clock_.now());
  WorkerMetrics::Outcome& counted = counted_as(runner_.metrics_, outcome);
  counted.finished->increment();
  counted.wait_seconds->observe(std::chrono::duration<double>(job.waited).count());
  counted.run_seconds->observe(run_seconds);

  std::string stages;
  for (const auto& [stage, seconds] : summary_.stage_seconds) {
    stages += (stages.empty() ? "" : " ") + std::string(v1::Stage_Name(stage)).substr(6) + "=" +
              std::to_string(static_cast<std::int64_t>(seconds * 1000));
  }
  const auto ms = static_cast<std::int64_t>(run_seconds * 1000);
  if (error == nullptr) {
    log::info("job finished",
              {{"job", job.job_id},
               {"epoch", job.epoch},
               {"attempt", job.attempt},
               {"outcome", to_string(outcome)},
               {"ms", ms},
               {"waited_ms", job.waited.count()},
               {"frames", summary_.frames},
               {"bytes", summary_.bytes},
               {"stage_ms", stages}});
    return;
  }
  const bool ours = outcome == JobOutcome::kFailed || outcome == JobOutcome::kDeviceLost;
  log::write(ours ? log::Level::kError : log::Level::kWarn,
             "job finished",
             {{"job", job.job_id},
              {"epoch", job.epoch},
              {"attempt", job.attempt},
              {"outcome", to_string(outcome)},
              {"stage", stage_name(stage_)},
              {"code", to_string(error->code)},
              {"reason", error->message},
              {"ms", ms},
              {"waited_ms", job.waited.count()}});
}

JobRunner::JobRunner(GenerationEngine& engine,
                     queue::JobConsumer& consumer,
                     LeaseKeeper& keeper,
                     const Drain& drain,
                     const Clock& clock,
                     WorkerMetrics& metrics,
                     Options options)
    : engine_(engine),
      consumer_(consumer),
      keeper_(keeper),
      drain_(drain),
      clock_(clock),
      metrics_(metrics),
      options_(std::move(options)),
      estimate_(clock) {}

JobOutcome JobRunner::run(queue::ClaimedJob job) {
  const std::shared_ptr<JobLease> lease = keeper_.hold(std::move(job));
  metrics_.busy.set(1);
  (lease->job().attempt > 1 ? metrics_.takeovers : metrics_.first_attempts).increment();
  log::info("job claimed", {{"job", lease->job().job_id}, {"epoch", lease->job().epoch}, {"attempt", lease->job().attempt}});
  Attempt attempt(*this, *lease);
  const Status worked = attempt.work();
  const JobOutcome outcome = attempt.end(worked);
  keeper_.drop();
  metrics_.busy.set(0);
  return outcome;
}

}  // namespace merope::worker
