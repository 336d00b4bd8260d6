// Names of jobs, workers and requests.
#pragma once

#include <string>
#include <string_view>

namespace merope {

// 128 random bits as 32 hex digits behind a prefix: random_id("job") = "job-5f0c...". Any thread may call it.
std::string random_id(std::string_view prefix);

// Whether a client may use this text as a request or job id: 1 to 128 characters of [A-Za-z0-9._-].
bool is_valid_id(std::string_view id);

}  // namespace merope
