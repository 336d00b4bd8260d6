#include "client/cli/follow.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "client/cli/exit_status.h"
#include "client/cli/printing.h"
#include "client/cli/progress.h"

namespace merope::cli {
namespace {

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";
constexpr std::chrono::seconds kSecondInterrupt{2};

int terminal_columns() {
  winsize size{};
  if (::isatty(STDERR_FILENO) == 0 || ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) {
    return 0;
  }
  return size.ws_col > 0 ? size.ws_col : 80;
}

void say(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

// Shows progress and stores the clip.
class FollowSink final : public client::EventSink {
 public:
  FollowSink(bool json, std::string out, std::string job_id, std::unique_ptr<client::FragmentStore> store, bool png)
      : json_(json),
        out_(std::move(out)),
        job_id_(std::move(job_id)),
        store_(std::move(store)),
        png_(png),
        view_(terminal_columns()) {}

  Status on_event(const v1::JobEvent& event) override {
    if (json_) {
      print(json_line(event));
    } else {
      say(view_.update(event));
    }
    if (event.has_restarted() && store_) {
      return output_error(store_->restart());
    }
    if (event.has_fragment()) {
      const v1::Fragment& fragment = event.fragment();
      if (!store_) {
        png_ = std::string_view(fragment.data()).starts_with(kPngSignature);
        auto opened = open_output(out_, job_id_, png_);
        if (!opened) {
          return output_error(std::move(opened).error());
        }
        store_ = *std::move(opened);
      }
      return output_error(store_->add(fragment.data(), fragment.last_part()));
    }
    if (event.has_finished() && store_) {
      return output_error(store_->commit());
    }
    return {};
  }

  void on_reattach(const Error& reason, std::chrono::milliseconds pause) override {
    if (!json_) {
      say(view_.reattach(reason, pause));
    }
  }

  std::string clear() { return view_.clear(); }
  bool output_failed() const { return output_failed_; }
  std::string path() const { return output_path(out_, job_id_, png_); }

 private:
  Status output_error(Status status) {
    output_failed_ = output_failed_ || !status;
    return status;
  }

  const bool json_;
  const std::string out_;
  const std::string job_id_;
  std::unique_ptr<client::FragmentStore> store_;
  bool png_;
  bool output_failed_ = false;
  ProgressView view_;
};

// What Ctrl-C asked for while a job was waited for.
class InterruptedWait {
 public:
  InterruptedWait(Interrupts& interrupts, bool cancel_at_once) : interrupts_(interrupts) {
    interrupts_.handle([this, cancel_at_once](int n) {
      {
        const std::lock_guard lock(mutex_);
        cancel_ = cancel_ || cancel_at_once || n > 1;
      }
      changed_.notify_all();
      stop_.request_stop();
    });
  }
  ~InterruptedWait() { interrupts_.stop_handling(); }
  InterruptedWait(const InterruptedWait&) = delete;
  InterruptedWait& operator=(const InterruptedWait&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  bool happened() const { return stop_.stop_requested(); }
  // Whether the job is to be cancelled; waits a moment for a second Ctrl-C.
  bool wants_cancel(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return cancel_; });
    return cancel_;
  }

 private:
  Interrupts& interrupts_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool cancel_ = false;
};

int leave(Session& session, const std::string& job_id, const FollowOptions& options, InterruptedWait& interrupted) {
  if (!options.cancel_on_interrupt) {
    say(fmt::format("leaving {} alone; Ctrl-C again within {} s cancels it\n", job_id, kSecondInterrupt.count()));
  }
  if (interrupted.wants_cancel(kSecondInterrupt)) {
    const Result<v1::Job> job = session.client.cancel(job_id);
    if (!job) {
      return fail(session, job.error());
    }
    say(fmt::format("{} {}\n", job_id, job->cancel_requested() ? "was asked to stop" : "is " + state_name(job->state())));
    return kExitJobCancelled;
  }
  const std::string out = options.out.empty() ? "" : " -o " + options.out;
  say(fmt::format("the job goes on; to take it up again: merope-cli watch {}{}\n", job_id, out));
  return kExitInterrupted;
}

}  // namespace

std::string output_path(const std::string& out, const std::string& job_id, bool png) {
  if (!out.empty()) {
    return out;
  }
  return png ? job_id : job_id + ".mp4";
}

Result<std::unique_ptr<client::FragmentStore>> open_output(const std::string& out, const std::string& job_id, bool png) {
  const std::string path = output_path(out, job_id, png);
  return png ? client::open_fragment_folder(path, ".png") : client::open_fragment_file(path);
}

int follow_job(Session& session,
               const std::string& job_id,
               const FollowOptions& options,
               std::unique_ptr<client::FragmentStore> store,
               bool png) {
  FollowSink sink(session.json, options.out, job_id, std::move(store), png);
  InterruptedWait interrupted(session.interrupts, options.cancel_on_interrupt);
  const Result<client::JobEnd> end = session.client.watch(job_id, sink, interrupted.token());
  say(sink.clear());
  if (!end && interrupted.happened()) {
    return leave(session, job_id, options, interrupted);
  }
  if (!end) {
    const int code = fail(session, end.error());
    if (sink.output_failed()) {
      say(fmt::format("the job goes on; elsewhere: merope-cli watch {} -o PATH\n", job_id));
      return kExitCanNotWrite;
    }
    return code;
  }
  if (end->failure) {
    fail(session, *end->failure);
    return end->failure->code == ErrorCode::kCancelled ? kExitJobCancelled : kExitJobFailed;
  }
  if (!session.json) {
    say(finished_text(end->finished) + "\n");
    print(sink.path() + "\n");
  }
  return kExitOk;
}

}  // namespace merope::cli
