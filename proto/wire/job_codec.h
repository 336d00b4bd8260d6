// What server and worker say to each other through the queue, as bytes: the stored job, the entries of its event stream, and
// what a worker announces about itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "merope/v1/job.pb.h"
#include "proto/spec/generation_spec.h"

namespace merope::wire {

// The uploaded files. At most one of the two is there.
struct ConditioningFiles {
  std::vector<std::string> pictures;  // PNG or JPEG files, one per frame
  std::string mp4_clip;               // its first spec.n_conditioning_frames frames are used
};

struct StoredJob {
  GenerationSpec spec;
  ConditioningFiles conditioning;
};

// queue::NewJob::spec and ::input.
std::string encode_stored_spec(const GenerationSpec& spec);
std::string encode_stored_input(const v1::ConditioningFrames& conditioning, int n_conditioning_frames);

// The way back, in the worker (queue::ClaimedJob::spec and ::input). kDataLoss when the bytes are no stored job; a spec
// whose version is newer than this build is kFailedPrecondition: another worker may read it. The model's name is not
// compared.
Result<StoredJob> parse_stored_job(std::string_view spec, std::string_view input);

// Entries of a job's stream. Each returned string is the payload of one queue put: at most 248 KiB.
std::string encode_started(const std::string& worker, std::uint64_t epoch, std::uint32_t attempt);
std::string encode_progress(v1::Stage stage, std::uint32_t step, std::uint32_t steps, std::optional<double> seconds_left);
std::string encode_failed(const Error& error);

// One fragment of the output in as many parts as it needs.
inline constexpr std::size_t kMaxFragmentPartBytes = 248 * 1024 - 64;  // 64: the fields around the bytes
std::vector<std::string> encode_fragment(std::string_view bytes,
                                         std::uint32_t fragment_index,
                                         std::uint32_t first_frame,
                                         std::uint32_t n_frames);

struct FinishedSummary {
  std::uint32_t frames = 0;
  std::uint64_t seed = 0;
  std::uint64_t bytes = 0;  // sum of all fragments
  std::string sha256;       // hex, over the concatenation of all fragments
  std::vector<std::pair<v1::Stage, double>> stage_seconds;
};
std::string encode_finished(const FinishedSummary& summary);

// kDataLoss when the bytes are no event, or one of a kind that this build does not know.
Result<v1::StreamEvent> parse_stream_event(std::string_view bytes);

struct WorkerDescription {
  std::string name;
  std::string device;   // "cpu", "cuda:0 (NVIDIA H200)"
  std::string version;  // of the program
  ModelDescription model;
};
std::string encode_announcement(const WorkerDescription& worker);
Result<WorkerDescription> parse_announcement(std::string_view bytes);

}  // namespace merope::wire
