#include "worker/app/fragment_publisher.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "proto/wire/job_codec.h"

namespace merope::worker {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

}  // namespace

FragmentPublisher::FragmentPublisher(StreamWriter& stream, const media::ClipSettings& settings, WorkerMetrics& metrics)
    : stream_(stream), settings_(settings), metrics_(metrics), thread_([this] { run(); }) {}

FragmentPublisher::~FragmentPublisher() {
  abandon();
}

Status FragmentPublisher::push(Item item) {
  const auto begin = SteadyClock::now();
  const bool taken = queue_.push(std::move(item));
  metrics_.backpressure_seconds.increment(seconds_since(begin));
  return taken ? Status() : status();
}

Status FragmentPublisher::entry(std::string bytes) {
  return push(std::move(bytes));
}

Status FragmentPublisher::frames(media::RgbFrames frames) {
  if (frames.n_frames == 1) {
    return push(std::move(frames));
  }
  for (int i = 0; i < frames.n_frames; ++i) {
    const auto frame = frames.frame(i);
    MEROPE_RETURN_IF_ERROR(push(media::RgbFrames{1, frames.height, frames.width, {frame.begin(), frame.end()}}));
  }
  return {};
}

Status FragmentPublisher::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

Result<PublishedClip> FragmentPublisher::finish() {
  queue_.close();
  if (thread_.joinable()) {
    thread_.join();
  }
  MEROPE_RETURN_IF_ERROR(status());
  clip_.sha256 = sha256_.finish_hex();
  return clip_;
}

void FragmentPublisher::abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  queue_.close();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void FragmentPublisher::run() {
  pthread_setname_np(pthread_self(), "publisher");
  Status result = work();
  {
    const std::lock_guard lock(mutex_);
    status_ = std::move(result);
  }
  queue_.close();
}

Status FragmentPublisher::work() {
  const auto abandoned = [this] {
    const std::lock_guard lock(mutex_);
    return abandoned_;
  };
  // Opened before the first frame exists: a size that the format can not hold fails now and not after minutes of denoising.
  const auto begin = SteadyClock::now();
  MEROPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<media::ClipWriter> writer,
      media::ClipWriter::open(settings_, [this](media::ClipFragment fragment) { return publish(std::move(fragment)); }));
  double busy_seconds = seconds_since(begin);
  while (std::optional<Item> item = queue_.pop()) {
    if (abandoned()) {
      return {};
    }
    if (const auto* bytes = std::get_if<std::string>(&*item)) {
      MEROPE_RETURN_IF_ERROR(stream_.put(*bytes));
      continue;
    }
    const auto& frames = std::get<media::RgbFrames>(*item);
    const auto start = SteadyClock::now();
    MEROPE_RETURN_IF_ERROR(writer->write(frames));
    busy_seconds += seconds_since(start);
    clip_.n_frames += frames.n_frames;
    metrics_.frames.increment(frames.n_frames);
  }
  if (abandoned()) {
    return {};
  }
  const auto start = SteadyClock::now();
  MEROPE_RETURN_IF_ERROR(writer->finish());
  busy_seconds += seconds_since(start);
  clip_.encode_seconds = busy_seconds - publish_seconds_;
  return {};
}

Status FragmentPublisher::publish(media::ClipFragment fragment) {
  const auto begin = SteadyClock::now();
  for (const std::string& part : wire::encode_fragment(fragment.bytes,
                                                       n_fragments_,
                                                       static_cast<std::uint32_t>(fragment.first_frame),
                                                       static_cast<std::uint32_t>(fragment.n_frames))) {
    MEROPE_RETURN_IF_ERROR(stream_.put(part));
  }
  ++n_fragments_;
  sha256_.update(fragment.bytes);
  clip_.bytes += fragment.bytes.size();
  metrics_.fragments.increment();
  metrics_.fragment_bytes.increment(static_cast<double>(fragment.bytes.size()));
  publish_seconds_ += seconds_since(begin);
  return {};
}

}  // namespace merope::worker
