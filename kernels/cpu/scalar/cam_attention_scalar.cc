// Grouped camera attention in plain loops, written so that a compiler turns them into vector code of any width.
//
// Every item of work is a slice of one query camera's rows in one head. The rows lie side by side in panels of kLanes: a
// panel is [channel][lane], so that scores, softmax and the output of kLanes rows advance together and nothing is summed
// across lanes. Per tile of keys:
//   1. take the keys and values whose rotation and native parts are done (once per call, they need no query camera),
//   2. turn their disparity triplets by the frames of the anchors, rebuilt from the arcs, and their translation pairs by the
//      angles of (query camera, key camera),
//   3. scores of a panel, online softmax, and the weighted sum of the values.
// At the end the output goes through the inverse of the query's transform.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/scalar/scalar_kernels.h"

namespace merope::kernels {
namespace {

constexpr int kLanes = 8;
constexpr int kTileKeys = 64;
constexpr int kMaxRows = 128;       // of an item of work
constexpr int kTokensPerItem = 16;  // of the preparation of keys and values
constexpr float kLog2E = 1.44269504088896341F;

// Where the parts of a head begin, and which channels are pairs.
struct HeadLayout {
  int head_dim = 0;
  int rotation = 0;         // first channel
  std::vector<int> trans;   // first and second channel of each pair, axis by axis
  std::vector<int> native;  // the same, time, first, second image axis
};

void append_band(std::vector<int>& pairs, int begin, int width, CamPairLayout layout) {
  for (int m = 0; m < width / 2; ++m) {
    const bool adjacent = layout == CamPairLayout::kAdjacent;
    pairs.push_back(begin + (adjacent ? 2 * m : m));
    pairs.push_back(begin + (adjacent ? 2 * m + 1 : m + width / 2));
  }
}

HeadLayout head_layout(const CamAttentionArgs& args) {
  const CamPartition& p = args.partition;
  HeadLayout layout;
  layout.head_dim = p.head_dim();
  layout.rotation = p.disparity;
  int begin = p.disparity + p.rotation;
  for (int axis = 0; axis < 3; ++axis) {
    append_band(layout.trans, begin, p.translation / 3, args.pair_layout);
    begin += p.translation / 3;
  }
  for (const int width : {p.native_time, p.native_1, p.native_2}) {
    append_band(layout.native, begin, width, args.pair_layout);
    begin += width;
  }
  return layout;
}

// x <- M x for n consecutive triplets.
void rotate_triplets(float* x, int n, const float* m) {
  for (int i = 0; i < n; ++i, x += 3) {
    const float a = x[0];
    const float b = x[1];
    const float c = x[2];
    x[0] = m[0] * a + m[1] * b + m[2] * c;
    x[1] = m[3] * a + m[4] * b + m[5] * c;
    x[2] = m[6] * a + m[7] * b + m[8] * c;
  }
}

// x <- M^T x.
void rotate_triplets_back(float* x, int n, const float* m) {
  const float transposed[9] = {m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]};
  rotate_triplets(x, n, transposed);
}

// Turns pairs by their angles; sign = -1 turns them back.
void rotate_pairs(float* x, const std::vector<int>& pairs, const float* cosines, const float* sines, float sign) {
  for (std::size_t m = 0; m < pairs.size() / 2; ++m) {
    float& first = x[pairs[2 * m]];
    float& second = x[pairs[2 * m + 1]];
    const float c = cosines[m];
    const float s = sign * sines[m];
    const float turned = c * first - s * second;
    second = s * first + c * second;
    first = turned;
  }
}

// The minimum rotation of an anchor's direction, row by row (MeRoPE Eq. 5 in the form that does not cancel behind the
// camera).
void min_rot(const float* u, const CamTables& tables, float* m) {
  const float off_axis = u[0] * u[0] + u[1] * u[1];
  if (u[2] < 0 && off_axis <= tables.eps_pole) {
    std::fill(m, m + 9, 0.0F);
    m[0] = tables.pole_diagonal[0];
    m[4] = tables.pole_diagonal[1];
    m[8] = tables.pole_diagonal[2];
    return;
  }
  const float k = u[2] >= 0 ? 1 / (1 + u[2]) : (1 - u[2]) / off_axis;
  m[0] = 1 - u[0] * u[0] * k;
  m[1] = m[3] = -u[0] * u[1] * k;
  m[4] = 1 - u[1] * u[1] * k;
  m[2] = u[0];
  m[5] = u[1];
  m[6] = -u[0];
  m[7] = -u[1];
  m[8] = u[2];
}

// Frames of all anchors of one arc, [n_anchors, 3, 3].
void anchor_frames(const float* arc, const CamTables& tables, float* frames) {
  const float beta_max = arc[6];
  for (int anchor = 0; anchor < tables.n_anchors; ++anchor) {
    float* frame = frames + 9 * anchor;
    if (beta_max == 0 && anchor > 0) {
      std::copy(frames, frames + 9, frame);  // a collapsed arc: all anchors are the direction at infinity
      continue;
    }
    const float c = std::cos(tables.rho[anchor] * beta_max);
    const float s = std::sin(tables.rho[anchor] * beta_max);
    const float u[3] = {c * arc[0] + s * arc[3], c * arc[1] + s * arc[4], c * arc[2] + s * arc[5]};
    min_rot(u, tables, frame);
  }
}

// 2^x for x <= 0, to 2e-7 relative; below 2^-126 it is 0. Written out because a library call would keep the loop around it
// scalar.
inline float exp2_nonpositive(float x) {
  const float clamped = x < -126.0F ? -126.0F : x;
  // Adding 1.5 * 2^23 rounds to a whole number, which then stands in the low bits.
  constexpr float kMagic = 12582912.0F;
  const float rounded = clamped + kMagic;
  const float f = clamped - (rounded - kMagic);  // -0.5 to 0.5
  // Taylor series of exp(f ln 2).
  float y = 1.5403530e-4F;
  y = y * f + 1.3333558e-3F;
  y = y * f + 9.6181291e-3F;
  y = y * f + 5.5504109e-2F;
  y = y * f + 2.4022651e-1F;
  y = y * f + 6.9314718e-1F;
  y = y * f + 1.0F;
  const auto exponent = static_cast<std::uint32_t>(std::bit_cast<std::int32_t>(rounded)) << 23U;
  const float result = std::bit_cast<float>(std::bit_cast<std::uint32_t>(y) + exponent);
  return x < -126.0F ? 0.0F : result;
}

// c[r][lane] += sum_k a[r * row_stride + k * k_stride] * b[k][lane] for kRows rows r and n terms k.
template <int kRows>
inline void multiply_add(
    const float* a, std::ptrdiff_t row_stride, std::ptrdiff_t k_stride, const float* b, int n, float* c) {
  float sum[kRows][kLanes];
  std::memcpy(sum, c, sizeof(sum));
  for (int k = 0; k < n; ++k) {
    for (int r = 0; r < kRows; ++r) {
      const float factor = a[r * row_stride + k * k_stride];
      for (int lane = 0; lane < kLanes; ++lane) {
        sum[r][lane] += factor * b[k * kLanes + lane];
      }
    }
  }
  std::memcpy(c, sum, sizeof(sum));
}

// The same for any number of rows.
void multiply_add_rows(
    const float* a, std::ptrdiff_t row_stride, std::ptrdiff_t k_stride, const float* b, int n, float* c, int n_rows) {
  int r = 0;
  for (; r + 4 <= n_rows; r += 4) {
    multiply_add<4>(a + r * row_stride, row_stride, k_stride, b, n, c + r * kLanes);
  }
  for (; r < n_rows; ++r) {
    multiply_add<1>(a + r * row_stride, row_stride, k_stride, b, n, c + r * kLanes);
  }
}

// A run of one camera's rows.
struct RowSlice {
  int camera = 0;
  int begin = 0;
  int end = 0;
};

// As many equal slices per camera as keep each at kMaxRows or less, whole panels where possible.
std::vector<RowSlice> row_slices(const CamTables& tables) {
  std::vector<RowSlice> slices;
  for (int camera = 0; camera < tables.n_cameras; ++camera) {
    const int begin = tables.camera_begin[camera];
    const int end = tables.camera_begin[camera + 1];
    const int n = (end - begin + kMaxRows - 1) / kMaxRows;
    const int rows = ((end - begin + n - 1) / n + kLanes - 1) / kLanes * kLanes;
    for (int row = begin; row < end; row += rows) {
      slices.push_back({camera, row, std::min(row + rows, end)});
    }
  }
  return slices;
}

// One thread's part of the workspace.
struct Scratch {
  float* queries = nullptr;  // [panel][channel][lane], scaled by scale * log2(e)
  float* sums = nullptr;     // the same shape: weighted values, not yet divided
  float* keys = nullptr;     // [kTileKeys][head_dim]
  float* values = nullptr;   // the same
  float* scores = nullptr;   // [kTileKeys][lane]
  float* row_max = nullptr;  // [kMaxRows]
  float* row_sum = nullptr;
  float* frames = nullptr;  // [n_anchors, 3, 3]
  float* row = nullptr;     // [head_dim]

  // Hands out consecutive parts of `base`, which may be null to learn the size in floats.
  std::size_t place(float* base, int head_dim, int n_anchors) {
    std::size_t used = 0;
    const auto take = [&](float*& part, std::size_t n) {
      part = base == nullptr ? nullptr : base + used;
      used += (n + 15) / 16 * 16;  // whole cache lines
    };
    const auto d = static_cast<std::size_t>(head_dim);
    take(queries, kMaxRows * d);
    take(sums, kMaxRows * d);
    take(keys, kTileKeys * d);
    take(values, kTileKeys * d);
    take(scores, kTileKeys * kLanes);
    take(row_max, kMaxRows);
    take(row_sum, kMaxRows);
    take(frames, 9 * static_cast<std::size_t>(std::max(n_anchors, 1)));
    take(row, d);
    return used;
  }
};

class CamAttention {
 public:
  CamAttention(const CamAttentionArgs& args, float* workspace, int n_threads)
      : args_(args), tables_(args.tables), layout_(head_layout(args)), d_(layout_.head_dim) {
    ready_keys_ = workspace;
    ready_values_ = workspace + shared_floats(args) / 2;
    float* next = workspace + shared_floats(args);
    scratch_.resize(static_cast<std::size_t>(n_threads));
    for (Scratch& scratch : scratch_) {
      next += scratch.place(next, d_, tables_.n_anchors);
    }
  }

  static std::size_t shared_floats(const CamAttentionArgs& args) {
    const std::size_t n = static_cast<std::size_t>(args.n_tokens) * args.n_heads * args.partition.head_dim();
    return 2 * ((n + 15) / 16 * 16);
  }

  void run(ParallelFor& parallel) {
    const int n_chunks = (args_.n_tokens + kTokensPerItem - 1) / kTokensPerItem;
    parallel.run(n_chunks, [&](int chunk, int) {
      const int end = std::min((chunk + 1) * kTokensPerItem, args_.n_tokens);
      for (int token = chunk * kTokensPerItem; token < end; ++token) {
        prepare_token(token);
      }
    });
    const std::vector<RowSlice> slices = row_slices(tables_);
    const int n_slices = static_cast<int>(slices.size());
    parallel.run(n_slices * args_.n_heads, [&](int item, int thread) {
      attend(slices[static_cast<std::size_t>(item % n_slices)], item / n_slices, scratch_[static_cast<std::size_t>(thread)]);
    });
  }

 private:
  // [token, head] in q, k, v, o.
  std::ptrdiff_t at(int token, int head) const { return (static_cast<std::ptrdiff_t>(token) * args_.n_heads + head) * d_; }
  // [head, token] in the prepared keys and values.
  std::ptrdiff_t ready_at(int token, int head) const {
    return (static_cast<std::ptrdiff_t>(head) * args_.n_tokens + token) * d_;
  }
  const float* native_cos(int token) const {
    return tables_.native_cos + token * std::ptrdiff_t{args_.partition.native() / 2};
  }
  const float* native_sin(int token) const {
    return tables_.native_sin + token * std::ptrdiff_t{args_.partition.native() / 2};
  }
  int n_rotation_triplets() const { return tables_.rotation_on ? args_.partition.rotation / 3 : 0; }
  int n_disparity_triplets() const { return tables_.disparity_on ? args_.partition.disparity / 3 : 0; }
  bool native_on() const { return tables_.native_on && args_.partition.native() > 0; }
  bool translation_on() const { return tables_.translation_on && args_.partition.translation > 0; }

  // Keys and values of a token with everything done that needs no query camera.
  void prepare_token(int token) {
    for (int head = 0; head < args_.n_heads; ++head) {
      for (const auto& [source, target] : {std::pair(args_.k, ready_keys_), std::pair(args_.v, ready_values_)}) {
        float* x = target + ready_at(token, head);
        std::copy_n(source + at(token, head), d_, x);
        if (n_rotation_triplets() > 0) {
          rotate_triplets(x + layout_.rotation, n_rotation_triplets(), tables_.ray_frame + 9 * std::ptrdiff_t{token});
        }
        if (native_on()) {
          rotate_pairs(x, layout_.native, native_cos(token), native_sin(token), 1);
        }
      }
    }
  }

  void load_queries(const RowSlice& slice, int head, Scratch& scratch) {
    const float scale = args_.scale * kLog2E;
    for (int i = 0; i < padded(slice); ++i) {
      float* panel = scratch.queries + std::ptrdiff_t{i / kLanes} * d_ * kLanes + i % kLanes;
      const int token = slice.begin + i;
      if (token >= slice.end) {
        std::fill_n(scratch.row, d_, 0.0F);  // a lane that is only there to fill the panel
      } else {
        std::copy_n(args_.q + at(token, head), d_, scratch.row);
        if (n_disparity_triplets() > 0) {
          rotate_triplets(scratch.row, n_disparity_triplets(), tables_.token_frame + 9 * std::ptrdiff_t{token});
        }
        if (n_rotation_triplets() > 0) {
          const float* frame = tables_.ray_frame + 9 * std::ptrdiff_t{token};
          rotate_triplets(scratch.row + layout_.rotation, n_rotation_triplets(), frame);
        }
        if (native_on()) {
          rotate_pairs(scratch.row, layout_.native, native_cos(token), native_sin(token), 1);
        }
      }
      for (int c = 0; c < d_; ++c) {
        panel[c * kLanes] = scratch.row[c] * scale;
      }
    }
  }

  // Keys and values [begin, end) as the query camera sees them.
  void load_tile(int query_camera, int begin, int end, int head, Scratch& scratch) {
    std::copy_n(ready_keys_ + ready_at(begin, head), std::ptrdiff_t{end - begin} * d_, scratch.keys);
    std::copy_n(ready_values_ + ready_at(begin, head), std::ptrdiff_t{end - begin} * d_, scratch.values);
    const int* camera_end = std::upper_bound(tables_.camera_begin, tables_.camera_begin + tables_.n_cameras, begin);
    const int n_angles = args_.partition.translation / 2;
    const int triplets_per_anchor = tables_.n_anchors > 0 ? n_disparity_triplets() / tables_.n_anchors : 0;
    for (int token = begin; token < end; ++token) {
      if (token == *camera_end) {
        ++camera_end;
      }
      float* key = scratch.keys + std::ptrdiff_t{token - begin} * d_;
      float* value = scratch.values + std::ptrdiff_t{token - begin} * d_;
      if (triplets_per_anchor > 0) {
        const float* arc = tables_.arcs + (static_cast<std::ptrdiff_t>(query_camera) * args_.n_tokens + token) * 7;
        anchor_frames(arc, tables_, scratch.frames);
        for (int anchor = 0; anchor < tables_.n_anchors; ++anchor) {
          const int c = 3 * anchor * triplets_per_anchor;
          rotate_triplets(key + c, triplets_per_anchor, scratch.frames + 9 * anchor);
          rotate_triplets(value + c, triplets_per_anchor, scratch.frames + 9 * anchor);
        }
      }
      if (translation_on()) {
        const auto key_camera = camera_end - tables_.camera_begin - 1;
        const std::ptrdiff_t pair = (static_cast<std::ptrdiff_t>(query_camera) * tables_.n_cameras + key_camera) * n_angles;
        rotate_pairs(key, layout_.trans, tables_.trans_cos + pair, tables_.trans_sin + pair, 1);
        rotate_pairs(value, layout_.trans, tables_.trans_cos + pair, tables_.trans_sin + pair, 1);
      }
    }
  }

  // One tile of keys for one panel of rows: online softmax with the running maximum and sum of each lane.
  void advance_panel(int panel, int n_keys, Scratch& scratch) const {
    const float* queries = scratch.queries + std::ptrdiff_t{panel} * d_ * kLanes;
    float* sums = scratch.sums + std::ptrdiff_t{panel} * d_ * kLanes;
    float* row_max = scratch.row_max + std::ptrdiff_t{panel} * kLanes;
    float* row_sum = scratch.row_sum + std::ptrdiff_t{panel} * kLanes;
    float* scores = scratch.scores;

    std::fill_n(scores, n_keys * kLanes, 0.0F);
    multiply_add_rows(scratch.keys, d_, 1, queries, d_, scores, n_keys);

    float new_max[kLanes];
    float shrink[kLanes];
    float new_sum[kLanes];
    std::copy_n(row_max, kLanes, new_max);
    for (int k = 0; k < n_keys; ++k) {
      for (int lane = 0; lane < kLanes; ++lane) {
        new_max[lane] = std::max(new_max[lane], scores[k * kLanes + lane]);
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      shrink[lane] = exp2_nonpositive(row_max[lane] - new_max[lane]);
      new_sum[lane] = row_sum[lane] * shrink[lane];
    }
    for (int k = 0; k < n_keys; ++k) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const float weight = exp2_nonpositive(scores[k * kLanes + lane] - new_max[lane]);
        scores[k * kLanes + lane] = weight;
        new_sum[lane] += weight;
      }
    }
    std::copy_n(new_max, kLanes, row_max);
    std::copy_n(new_sum, kLanes, row_sum);
    for (int c = 0; c < d_; ++c) {
      for (int lane = 0; lane < kLanes; ++lane) {
        sums[c * kLanes + lane] *= shrink[lane];
      }
    }
    multiply_add_rows(scratch.values, 1, d_, scores, n_keys, sums, d_);
  }

  void store_outputs(const RowSlice& slice, int head, Scratch& scratch) {
    for (int token = slice.begin; token < slice.end; ++token) {
      const int i = token - slice.begin;
      const float* panel = scratch.sums + std::ptrdiff_t{i / kLanes} * d_ * kLanes + i % kLanes;
      float* out = args_.o + at(token, head);
      for (int c = 0; c < d_; ++c) {
        out[c] = panel[c * kLanes] / scratch.row_sum[i];
      }
      if (n_disparity_triplets() > 0) {
        rotate_triplets_back(out, n_disparity_triplets(), tables_.token_frame + 9 * std::ptrdiff_t{token});
      }
      if (n_rotation_triplets() > 0) {
        const float* frame = tables_.ray_frame + 9 * std::ptrdiff_t{token};
        rotate_triplets_back(out + layout_.rotation, n_rotation_triplets(), frame);
      }
      if (native_on()) {
        rotate_pairs(out, layout_.native, native_cos(token), native_sin(token), -1);
      }
    }
  }

  static int padded(const RowSlice& slice) { return (slice.end - slice.begin + kLanes - 1) / kLanes * kLanes; }

  void attend(const RowSlice& slice, int head, Scratch& scratch) {
    load_queries(slice, head, scratch);
    std::fill_n(scratch.sums, std::ptrdiff_t{padded(slice)} * d_, 0.0F);
    // Finite, so that the difference to the first maximum is a number too.
    std::fill_n(scratch.row_max, padded(slice), std::numeric_limits<float>::lowest() / 4);
    std::fill_n(scratch.row_sum, padded(slice), 0.0F);
    for (int begin = 0; begin < args_.n_tokens; begin += kTileKeys) {
      const int end = std::min(begin + kTileKeys, args_.n_tokens);
      load_tile(slice.camera, begin, end, head, scratch);
      for (int panel = 0; panel < padded(slice) / kLanes; ++panel) {
        advance_panel(panel, end - begin, scratch);
      }
    }
    store_outputs(slice, head, scratch);
  }

  const CamAttentionArgs& args_;
  const CamTables& tables_;
  const HeadLayout layout_;
  const int d_;
  float* ready_keys_ = nullptr;  // [n_heads, n_tokens, head_dim]
  float* ready_values_ = nullptr;
  std::vector<Scratch> scratch_;  // one a thread
};

std::size_t workspace_bytes(const CamAttentionArgs& args, int n_threads) {
  const std::size_t per_thread = Scratch().place(nullptr, args.partition.head_dim(), args.tables.n_anchors);
  return (CamAttention::shared_floats(args) + per_thread * static_cast<std::size_t>(n_threads)) * sizeof(float);
}

void run(const CamAttentionArgs& args, void* workspace, ParallelFor& parallel) {
  CamAttention(args, static_cast<float*>(workspace), parallel.n_threads()).run(parallel);
}

}  // namespace

const KernelTable& scalar_kernels() {
  static constexpr KernelTable kTable{"scalar", {&check_args, &workspace_bytes, &run}};
  return kTable;
}

}  // namespace merope::kernels
