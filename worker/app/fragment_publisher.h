// Frames to encoded fragments to entries of the job's stream, on a thread of its own, so that encoding and Redis overlap
// with decoding on the device. Progress takes the same way: one thread writes the stream.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

#include "core/base/bounded_queue.h"
#include "core/base/result.h"
#include "core/base/sha256.h"
#include "core/media/clip_writer.h"
#include "core/media/rgb_frames.h"
#include "worker/app/stream_writer.h"
#include "worker/app/worker_metrics.h"

namespace merope::worker {

struct PublishedClip {
  int n_frames = 0;
  std::uint64_t bytes = 0;    // of all fragments
  std::string sha256;         // hex, over their concatenation
  double encode_seconds = 0;  // without the time in the queue
};

// Fed by one thread. Uses `stream` alone until finish() or abandon() has returned.
class FragmentPublisher {
 public:
  static constexpr std::size_t kCapacity = 16;  // frames that wait for the encoder; then the engine waits

  FragmentPublisher(StreamWriter& stream, const media::ClipSettings& settings, WorkerMetrics& metrics);
  ~FragmentPublisher();
  FragmentPublisher(const FragmentPublisher&) = delete;
  FragmentPublisher& operator=(const FragmentPublisher&) = delete;

  // An entry between the fragments. Errors: what stopped the publisher.
  Status entry(std::string bytes);
  // May wait for room. Errors: what stopped the publisher.
  Status frames(media::RgbFrames frames);
  // Why it stopped; OK while it runs.
  Status status() const;

  // Everything that was given is encoded and in the stream afterwards.
  Result<PublishedClip> finish();
  // Stops at the next entry; what was not written is dropped. finish() is not called.
  void abandon();

 private:
  using Item = std::variant<std::string, media::RgbFrames>;

  void run();
  Status work();
  Status publish(media::ClipFragment fragment);
  Status push(Item item);

  StreamWriter& stream_;
  const media::ClipSettings settings_;
  WorkerMetrics& metrics_;
  BoundedQueue<Item> queue_{kCapacity};

  // The publisher's thread only, until it has been joined.
  Sha256 sha256_;
  PublishedClip clip_;
  std::uint32_t n_fragments_ = 0;
  double publish_seconds_ = 0;

  mutable std::mutex mutex_;
  Status status_;           // guarded by mutex_
  bool abandoned_ = false;  // guarded by mutex_

  std::jthread thread_;
};

}  // namespace merope::worker
