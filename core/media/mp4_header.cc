// MP4 (ISO/IEC 14496-12): nested boxes of size, type and content. Only what says size and number of frames is read.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "core/media/internal/byte_reader.h"
#include "core/media/internal/formats.h"
#include "core/media/picture_header.h"

namespace merope::media {
namespace {

using internal::be16;
using internal::be32;
using internal::be64;
using internal::byte_at;
using internal::holds;

struct Box {
  std::string_view type;
  std::string_view content;
};

std::string printable(std::string_view type) {
  std::string text(type);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// Takes boxes off the front of `rest`.
Result<Box> next_box(std::string_view& rest) {
  if (rest.size() < 8) {
    return invalid_argument("MP4 is cut off in the head of a box");
  }
  std::uint64_t size = be32(rest, 0);
  std::size_t head = 8;
  const std::string_view type = rest.substr(4, 4);
  if (size == 1) {
    if (rest.size() < 16) {
      return invalid_argument("MP4 is cut off in the head of box " + printable(type));
    }
    size = be64(rest, 8);
    head = 16;
  } else if (size == 0) {
    size = rest.size();
  }
  if (size < head) {
    return invalid_argument("MP4 is damaged: box " + printable(type) + " is smaller than its head");
  }
  if (size > rest.size()) {
    return invalid_argument("MP4 is cut off in box " + printable(type));
  }
  const Box box{type, rest.substr(head, size - head)};
  rest.remove_prefix(size);
  return box;
}

// The first box of that type inside `content`; empty content when there is none.
Result<std::optional<std::string_view>> find_box(std::string_view content, std::string_view type) {
  while (!content.empty()) {
    MEROPE_ASSIGN_OR_RETURN(const Box box, next_box(content));
    if (box.type == type) {
      return std::optional<std::string_view>(box.content);
    }
  }
  return std::optional<std::string_view>();
}

Result<std::string_view> need_box(std::string_view content, std::string_view type) {
  MEROPE_ASSIGN_OR_RETURN(const std::optional<std::string_view> found, find_box(content, type));
  if (!found) {
    return invalid_argument("MP4 is damaged: box " + std::string(type) + " is missing");
  }
  return *found;
}

Status need_bytes(std::string_view content, std::size_t size, std::string_view type) {
  if (content.size() < size) {
    return invalid_argument("MP4 is damaged: box " + std::string(type) + " is too short");
  }
  return {};
}

struct VideoTrack {
  std::uint32_t track_id = 0;
  int width = 0;
  int height = 0;
  std::uint64_t n_samples = 0;
};

// Empty when the track is not video.
Result<std::optional<VideoTrack>> parse_track(std::string_view trak) {
  MEROPE_ASSIGN_OR_RETURN(const std::string_view mdia, need_box(trak, "mdia"));
  MEROPE_ASSIGN_OR_RETURN(const std::string_view hdlr, need_box(mdia, "hdlr"));
  MEROPE_RETURN_IF_ERROR(need_bytes(hdlr, 12, "hdlr"));
  if (hdlr.substr(8, 4) != "vide") {
    return std::optional<VideoTrack>();
  }
  VideoTrack track;
  MEROPE_ASSIGN_OR_RETURN(const std::string_view tkhd, need_box(trak, "tkhd"));
  MEROPE_RETURN_IF_ERROR(need_bytes(tkhd, 24, "tkhd"));
  track.track_id = be32(tkhd, byte_at(tkhd, 0) == 1 ? 20 : 12);  // version 1 has 64-bit times before it

  MEROPE_ASSIGN_OR_RETURN(const std::string_view minf, need_box(mdia, "minf"));
  MEROPE_ASSIGN_OR_RETURN(const std::string_view stbl, need_box(minf, "stbl"));
  MEROPE_ASSIGN_OR_RETURN(std::string_view stsd, need_box(stbl, "stsd"));
  MEROPE_RETURN_IF_ERROR(need_bytes(stsd, 8, "stsd"));
  stsd.remove_prefix(8);
  MEROPE_ASSIGN_OR_RETURN(const Box entry, next_box(stsd));
  if (entry.type != "avc1" && entry.type != "avc3") {
    return invalid_argument("MP4 holds video of type '" + printable(entry.type) + "', not H.264");
  }
  MEROPE_RETURN_IF_ERROR(need_bytes(entry.content, 28, "stsd"));
  track.width = static_cast<int>(be16(entry.content, 24));
  track.height = static_cast<int>(be16(entry.content, 26));

  MEROPE_ASSIGN_OR_RETURN(const std::optional<std::string_view> sizes, find_box(stbl, "stsz"));
  MEROPE_ASSIGN_OR_RETURN(const std::optional<std::string_view> compact, find_box(stbl, "stz2"));
  if (const auto& table = sizes ? sizes : compact; table) {
    MEROPE_RETURN_IF_ERROR(need_bytes(*table, 12, "stsz"));
    track.n_samples = be32(*table, 8);
  }
  return std::optional<VideoTrack>(track);
}

Result<VideoTrack> parse_moov(std::string_view moov) {
  while (!moov.empty()) {
    MEROPE_ASSIGN_OR_RETURN(const Box box, next_box(moov));
    if (box.type == "trak") {
      MEROPE_ASSIGN_OR_RETURN(const std::optional<VideoTrack> track, parse_track(box.content));
      if (track) {
        return *track;
      }
    }
  }
  return invalid_argument("MP4 has no video track");
}

// Samples of the track in one movie fragment.
Result<std::uint64_t> count_fragment_samples(std::string_view moof, std::uint32_t track_id) {
  std::uint64_t n_samples = 0;
  while (!moof.empty()) {
    MEROPE_ASSIGN_OR_RETURN(const Box traf, next_box(moof));
    if (traf.type != "traf") {
      continue;
    }
    MEROPE_ASSIGN_OR_RETURN(const std::string_view tfhd, need_box(traf.content, "tfhd"));
    MEROPE_RETURN_IF_ERROR(need_bytes(tfhd, 8, "tfhd"));
    if (be32(tfhd, 4) != track_id) {
      continue;
    }
    std::string_view rest = traf.content;
    while (!rest.empty()) {
      MEROPE_ASSIGN_OR_RETURN(const Box run, next_box(rest));
      if (run.type == "trun") {
        MEROPE_RETURN_IF_ERROR(need_bytes(run.content, 8, "trun"));
        n_samples += be32(run.content, 4);
      }
    }
  }
  return n_samples;
}

}  // namespace

bool internal::looks_like_mp4(std::string_view bytes) {
  return bytes.size() >= 8 && bytes.substr(4, 4) == "ftyp";
}

Result<ClipHeader> read_clip_header(std::string_view bytes) {
  if (bytes.empty()) {
    return invalid_argument("is empty");
  }
  if (!internal::looks_like_mp4(bytes)) {
    return invalid_argument("is not an MP4 file");
  }
  std::optional<VideoTrack> track;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    MEROPE_ASSIGN_OR_RETURN(const Box box, next_box(rest));
    if (box.type == "moov") {
      if (track) {
        return invalid_argument("MP4 is damaged: it has two boxes moov");
      }
      MEROPE_ASSIGN_OR_RETURN(track, parse_moov(box.content));
    } else if (box.type == "moof") {
      if (!track) {
        return invalid_argument("MP4 is damaged: a fragment comes before box moov");
      }
      MEROPE_ASSIGN_OR_RETURN(const std::uint64_t n_samples, count_fragment_samples(box.content, track->track_id));
      track->n_samples += n_samples;
    }
  }
  if (!track) {
    return invalid_argument("MP4 is cut off or damaged: it has no box moov");
  }
  if (track->width == 0 || track->height == 0) {
    return invalid_argument("MP4 says it is " + std::to_string(track->width) + "x" + std::to_string(track->height) +
                            " pixels large");
  }
  if (track->n_samples == 0) {
    return invalid_argument("MP4 has no frames");
  }
  if (track->n_samples > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    return invalid_argument("MP4 says it has " + std::to_string(track->n_samples) + " frames");
  }
  return ClipHeader{track->width, track->height, static_cast<int>(track->n_samples)};
}

}  // namespace merope::media
