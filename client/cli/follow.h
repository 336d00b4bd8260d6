// Waiting for a job: progress for the reader, the clip for the disk, Ctrl-C for leaving.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/cli/commands.h"
#include "client/fragment_file.h"

namespace merope::cli {

// Opens the place for the clip. `png`: whether it is a folder of frames; empty `out` means the job's id.
Result<std::unique_ptr<client::FragmentStore>> open_output(const std::string& out, const std::string& job_id, bool png);
std::string output_path(const std::string& out, const std::string& job_id, bool png);

// Follows the job to its end. `store`: where the clip goes; null: it is opened with the first fragment, which tells whether
// frames or an MP4 come.
int follow_job(Session& session,
               const std::string& job_id,
               const FollowOptions& options,
               std::unique_ptr<client::FragmentStore> store,
               bool png);

}  // namespace merope::cli
