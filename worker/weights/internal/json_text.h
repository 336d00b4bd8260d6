// Strict parsing of the JSON that comes with weights. Private to this room.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace merope::worker {

// One object, UTF-8, no byte-order mark, nothing behind it but white space, no key twice in one object. `origin` starts the
// message of the error, which is a kDataLoss.
Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& origin);

}  // namespace merope::worker
