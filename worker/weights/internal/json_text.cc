#include "worker/weights/internal/json_text.h"

#include <set>
#include <vector>

namespace merope::worker {

Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& origin) {
  if (!text.starts_with('{')) {
    return Error{ErrorCode::kDataLoss, origin + ": does not start with a JSON object"};
  }
  std::vector<std::set<std::string>> keys_of_open_objects;
  std::string repeated;
  using Event = nlohmann::json::parse_event_t;
  const auto on_event = [&](int, Event event, nlohmann::json& value) {
    if (event == Event::object_start) {
      keys_of_open_objects.emplace_back();
    } else if (event == Event::object_end) {
      keys_of_open_objects.pop_back();
    } else if (event == Event::key && !keys_of_open_objects.back().insert(value.get<std::string>()).second) {
      repeated = value.get<std::string>();
    }
    return true;
  };
  try {
    nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), on_event);
    if (!repeated.empty()) {
      return Error{ErrorCode::kDataLoss, origin + ": the key \"" + repeated + "\" occurs twice"};
    }
    return json;
  } catch (const nlohmann::json::exception& error) {
    return Error{ErrorCode::kDataLoss, origin + ": " + error.what()};
  }
}

}  // namespace merope::worker
