// The uploaded pictures or clip as the frames that the engine begins with.
#pragma once

#include <functional>

#include "core/base/result.h"
#include "core/media/rgb_frames.h"
#include "proto/wire/job_codec.h"

namespace merope::worker {

// kInvalidArgument naming the file ("conditioning.pictures.files[3]: PNG is damaged: ..."): the server has read headers
// only, so broken pixels are found here. `between` is asked before each picture; its error ends the work.
Result<media::RgbFrames> decode_conditioning(const wire::StoredJob& job, const std::function<Status()>& between);

}  // namespace merope::worker
