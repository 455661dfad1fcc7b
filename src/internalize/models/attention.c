/* Causal attention of many small heads, forward and backward, for one thread. See attention.py, which compiles this file.

Arrays are float32. A row of `query` and of `out` is a column's heads side by side, H * K numbers; a row of `kv` is all its keys,
then all its values. The n queries belong to the last n of the N columns.

As many heads are computed at once as a vector has lanes, so that there are no sums across a vector and none of it is idle
whatever N is. Keys and values of such a group are first transposed to [column][number][lane]. `stats` keeps, for each query and
group, the greatest score of every lane and one over the sum of its exponentials. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));

INLINE vec greater(vec a, vec b) {
  ivec mask = a > b;
  return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}

INLINE vec exponential(vec x) { /* x <= 0; the polynomial of Cephes' expf */
  x = greater(x, (vec){} - 87.0f);
  ivec whole = __builtin_convertvector(x * 1.44269504088896341f - 0.5f, ivec);
  vec n = __builtin_convertvector(whole, vec);
  vec r = x - n * 0.693359375f + n * 2.12194440e-4f;
  vec y = 1.9875691500e-4f * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  return y * (vec)((whole + 127) << 23);
}

/* One row of `heads` <= LANES heads, to [number][lane] and back. */
INLINE void gather(int K, int heads, const float *row, vec *to) {
  float *numbers = (float *)to;
  for (int h = 0; h < heads; h++)
    for (int c = 0; c < K; c++) numbers[c * LANES + h] = row[h * K + c];
}

INLINE void scatter(int K, int heads, const vec *from, float *row) {
  const float *numbers = (const float *)from;
  for (int h = 0; h < heads; h++)
    for (int c = 0; c < K; c++) row[h * K + c] = numbers[c * LANES + h];
}

INLINE float scale_of(int K) { return K == 2 ? 0.70710678f : K == 4 ? 0.5f : K == 8 ? 0.35355339f : 0.25f; }

INLINE void group_forward(int K, int heads, int n, int N, const float *query, ptrdiff_t q_row, const float *kv,
                          ptrdiff_t kv_row, ptrdiff_t D, float *out, vec *stats, ptrdiff_t stats_row, vec *scratch) {
  vec *k = scratch, *v = k + N * K, *w = v + N * K, q[16] = {}, sum[16];
  for (int m = 0; m < N; m++) {
    gather(K, heads, kv + m * kv_row, k + m * K);
    gather(K, heads, kv + m * kv_row + D, v + m * K);
  }
  for (int i = 0; i < n; i++) {
    const int limit = N - n + i + 1;
    gather(K, heads, query + i * q_row, q);
    for (int c = 0; c < K; c++) q[c] *= scale_of(K);
    vec most = (vec){} - 3e38f, total = {};
    for (int m = 0; m < limit; m++) {
      vec s = {};
      for (int c = 0; c < K; c++) s += q[c] * k[m * K + c];
      w[m] = s;
      most = greater(s, most);
    }
    for (int c = 0; c < K; c++) sum[c] = (vec){};
    for (int m = 0; m < limit; m++) {
      vec p = exponential(w[m] - most);
      total += p;
      for (int c = 0; c < K; c++) sum[c] += p * v[m * K + c];
    }
    vec inverse = 1.0f / total;
    for (int c = 0; c < K; c++) sum[c] *= inverse;
    scatter(K, heads, sum, out + i * D);
    memcpy(stats + i * stats_row, &most, sizeof most);
    memcpy(stats + i * stats_row + 1, &inverse, sizeof inverse);
  }
}

INLINE void group_backward(int K, int heads, int n, int N, const float *query, const float *kv, ptrdiff_t kv_row, ptrdiff_t D,
                           const float *out, const float *d_out, const vec *stats, ptrdiff_t stats_row, float *d_query,
                           float *d_kv, vec *scratch) {
  vec *k = scratch, *v = k + N * K, *dk = v + N * K, *dv = dk + N * K;
  vec q[16] = {}, o[16] = {}, g[16] = {}, dq[16];
  for (int m = 0; m < N; m++) {
    gather(K, heads, kv + m * kv_row, k + m * K);
    gather(K, heads, kv + m * kv_row + D, v + m * K);
  }
  memset(dk, 0, 2 * N * K * sizeof(vec));
  for (int i = 0; i < n; i++) {
    const int limit = N - n + i + 1;
    vec most, inverse, delta = {};
    memcpy(&most, stats + i * stats_row, sizeof most);
    memcpy(&inverse, stats + i * stats_row + 1, sizeof inverse);
    gather(K, heads, query + i * D, q);
    gather(K, heads, out + i * D, o);
    gather(K, heads, d_out + i * D, g);
    for (int c = 0; c < K; c++) {
      q[c] *= scale_of(K);
      delta += o[c] * g[c];
      dq[c] = (vec){};
    }
    for (int m = 0; m < limit; m++) {
      vec s = {}, dp = {};
      for (int c = 0; c < K; c++) {
        s += q[c] * k[m * K + c];
        dp += g[c] * v[m * K + c];
      }
      vec p = exponential(s - most) * inverse;
      vec ds = p * (dp - delta);
      for (int c = 0; c < K; c++) {
        dk[m * K + c] += ds * q[c];
        dv[m * K + c] += p * g[c];
        dq[c] += ds * k[m * K + c];
      }
    }
    for (int c = 0; c < K; c++) dq[c] *= scale_of(K);
    scatter(K, heads, dq, d_query + i * D);
  }
  for (int m = 0; m < N; m++) {
    scatter(K, heads, dk + m * K, d_kv + m * 2 * D);
    scatter(K, heads, dv + m * K, d_kv + m * 2 * D + D);
  }
}

int attention_lanes(void) { return LANES; }

/* Scratch memory of one group, zeroed, since lanes without a head are never written. */
static vec *scratch_for(int K, int N) {
  const size_t size = (size_t)(4 * K + 1) * N * sizeof(vec);
  vec *scratch = aligned_alloc(sizeof(vec), size);
  if (scratch) memset(scratch, 0, size);
  return scratch;
}

INLINE int forward(int K, int B, int H, int n, int N, const float *query, ptrdiff_t q_batch, ptrdiff_t q_row, const float *kv,
                   ptrdiff_t kv_batch, ptrdiff_t kv_row, float *out, float *stats) {
  const ptrdiff_t D = (ptrdiff_t)H * K;
  const int groups = (H + LANES - 1) / LANES;
  vec *scratch = scratch_for(K, N);
  if (!scratch) return 1;
  for (int b = 0; b < B; b++)
    for (int group = 0; group < groups; group++) {
      const int heads = H - group * LANES < LANES ? H - group * LANES : LANES;
      const ptrdiff_t at = (ptrdiff_t)group * LANES * K;
      group_forward(K, heads, n, N, query + b * q_batch + at, q_row, kv + b * kv_batch + at, kv_row, D, out + b * n * D + at,
                    (vec *)stats + ((ptrdiff_t)b * n * groups + group) * 2, 2 * groups, scratch);
    }
  free(scratch);
  return 0;
}

INLINE int backward(int K, int B, int H, int n, int N, const float *query, const float *kv, ptrdiff_t kv_batch,
                    ptrdiff_t kv_row, const float *out, const float *d_out, const float *stats, float *d_query, float *d_kv) {
  const ptrdiff_t D = (ptrdiff_t)H * K;
  const int groups = (H + LANES - 1) / LANES;
  vec *scratch = scratch_for(K, N);
  if (!scratch) return 1;
  for (int b = 0; b < B; b++)
    for (int group = 0; group < groups; group++) {
      const int heads = H - group * LANES < LANES ? H - group * LANES : LANES;
      const ptrdiff_t at = (ptrdiff_t)group * LANES * K, row = b * n * D + at;
      group_backward(K, heads, n, N, query + row, kv + b * kv_batch + at, kv_row, D, out + row, d_out + row,
                     (const vec *)stats + ((ptrdiff_t)b * n * groups + group) * 2, 2 * groups, d_query + row,
                     d_kv + b * N * 2 * D + at, scratch);
    }
  free(scratch);
  return 0;
}

/* Strides are in numbers. stats: (B, n, groups, 2, LANES). Returns 0, or 1 when there is no memory. */
int attention_forward(int K, int B, int H, int n, int N, const float *query, ptrdiff_t q_batch, ptrdiff_t q_row, const float *kv,
                      ptrdiff_t kv_batch, ptrdiff_t kv_row, float *out, float *stats) {
  switch (K) {
    case 2: return forward(2, B, H, n, N, query, q_batch, q_row, kv, kv_batch, kv_row, out, stats);
    case 4: return forward(4, B, H, n, N, query, q_batch, q_row, kv, kv_batch, kv_row, out, stats);
    case 8: return forward(8, B, H, n, N, query, q_batch, q_row, kv, kv_batch, kv_row, out, stats);
    default: return forward(16, B, H, n, N, query, q_batch, q_row, kv, kv_batch, kv_row, out, stats);
  }
}

/* `query`, `out` and `d_out` are contiguous here. */
int attention_backward(int K, int B, int H, int n, int N, const float *query, const float *kv, ptrdiff_t kv_batch,
                       ptrdiff_t kv_row, const float *out, const float *d_out, const float *stats, float *d_query, float *d_kv) {
  switch (K) {
    case 2: return backward(2, B, H, n, N, query, kv, kv_batch, kv_row, out, d_out, stats, d_query, d_kv);
    case 4: return backward(4, B, H, n, N, query, kv, kv_batch, kv_row, out, d_out, stats, d_query, d_kv);
    case 8: return backward(8, B, H, n, N, query, kv, kv_batch, kv_row, out, d_out, stats, d_query, d_kv);
    default: return backward(16, B, H, n, N, query, kv, kv_batch, kv_row, out, d_out, stats, d_query, d_kv);
  }
}
