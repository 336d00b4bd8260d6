// Writes a clip so that its name appears only when it is complete.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace merope::client {

// Where the fragments of a clip go. Destroyed without commit() it leaves nothing behind. One thread at a time.
class FragmentStore {
 public:
  virtual ~FragmentStore() = default;

  // The next part; `last_part`: it completes its fragment.
  virtual Status add(std::string_view part, bool last_part) = 0;
  // Everything added so far is void: another attempt begins.
  virtual Status restart() = 0;
  // Makes it durable and gives it its name. Nothing may be called afterwards.
  virtual Status commit() = 0;
};

// The concatenation of all parts as one file, replacing an older one of that name. It grows beside the target as
// ".<name>.<random>.part", where a player may already open it. Errors: kFailedPrecondition naming the path.
Result<std::unique_ptr<FragmentStore>> open_fragment_file(const std::string& path);

// One file a fragment, frame_00000<extension>, frame_00001<extension>, ..., in a folder that must not be there yet or be
// empty.
Result<std::unique_ptr<FragmentStore>> open_fragment_folder(const std::string& path, const std::string& extension);

}  // namespace merope::client
