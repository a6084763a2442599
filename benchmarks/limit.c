/* What one AVX-512 core can do: D = A x B in f16 as sm_90 does it, written by hand for finite f16 and nothing else.

   cc -O3 -march=native limit.c -o limit
   ./limit M N K ROUNDS                     best of so many rounds, in products a second of processor time
   ./limit M N K ROUNDS OPERANDS RESULT     likewise; reads codes of A [M][K] and B [K][N], writes D [M][N] as floats

   N is a multiple of 16 and K of 256. The whole product is timed: codes of A and B in, D out.

   The arithmetic is mma.m16n8k16.f32.f16.f16.f32 of sm_90, C = +0, k ascending: with E the largest exponent of sixteen
   nominal products and the accumulator, each of the seventeen is cut toward zero to a multiple of 2^(E - 25); the exact sum
   is cut to an f32. Why 32 bits are enough:
   - A product of two f16 has 22 significant bits, so it is exact in f32, and so is its product with a power of two.
   - A scaled product is below 2^27 (a significand is below 2), so conversion to int32, which cuts toward zero, is defined.
   - Sixteen of them stay below 2^31. The accumulator on top, below 2^26, could pass it only if they were on average within
     1/32 of the largest and of one sign; that is not looked for here. (warpmma does look for it.)
   - E stops at LOWEST, which keeps the scale finite. A step with a product that is not zero has E of -28 at least, so an
     accumulator is a multiple of 2^-53: if E is below LOWEST, all there is to add is zero.
   Each sixteen products cost two multiplications, a conversion and an addition, and half an addition and half a maximum of
   exponents, which come as 16-bit pairs. */

#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef ROWS
#define ROWS 6 /* of accumulators in registers; 4 and 8 are a little slower (Sapphire Rapids, GCC 12) */
#endif
enum { LANES = 16, STEP = 16 };     /* columns of a vector; products of one instruction */
enum { BLOCK = 256, PANELS = 6 }; /* of k, and panels of rows: what of A is in use fits the second-level cache */
enum { BITS = 25, LOWEST = -60, NONE = -1000, BIAS = 127 };

/* A panel: some rows of A or columns of B over one block of k. */
static inline size_t values_at(int panel, int width) { return (size_t)panel * BLOCK * width; }
static inline size_t pairs_at(int panel, int width) { return (size_t)panel * BLOCK / 2 * width; }

static float value_of(uint16_t code) {
  return _cvtsh_ss(code);
}

/* Exponent before normalisation: subnormals have the least normal one; zeros have none. */
static int16_t exponent_of(uint16_t code) {
  const int field = code >> 10 & 31;
  return code & 0x7FFF ? (int16_t)((field ? field : 1) - 15) : NONE;
}

/* One panel of rows or columns `first` ... from a matrix with these strides; what lies beyond `count` is zero. */
static void pack(const uint16_t *codes, size_t stride, size_t stride_k, int first, int count, int width, float *values,
                 int16_t *pairs) {
  for (int k = 0; k < BLOCK; k++)
    for (int x = 0; x < width; x++) {
      const uint16_t code = first + x < count ? codes[(first + x) * stride + k * stride_k] : 0;
      values[k * width + x] = value_of(code);
      pairs[(k / 2 * width + x) * 2 + k % 2] = exponent_of(code);
    }
}

/* ROWS x 16 elements of D, over one block of k. */
static void tile(const float *a, const int32_t *a_pairs, const float *b, const int32_t *b_pairs, float *c, size_t stride,
                 int rows) {
  __m512 sum[ROWS];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++) sum[r] = r < rows ? _mm512_loadu_ps(c + r * stride) : _mm512_setzero_ps();
  for (int step = 0; step < BLOCK; step += STEP) {
    __m512i largest[ROWS], total[ROWS];
    __m512 scale[ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) largest[r] = _mm512_set1_epi16(NONE);
#pragma GCC unroll 1
    for (int k = step / 2; k < (step + STEP) / 2; k++) {
      const __m512i of_b = _mm512_load_si512(b_pairs + k * LANES);
#pragma GCC unroll 16
      for (int r = 0; r < ROWS; r++)
        largest[r] = _mm512_max_epi16(largest[r], _mm512_add_epi16(_mm512_set1_epi32(a_pairs[k * ROWS + r]), of_b));
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
      const __m512i odd = _mm512_srai_epi32(largest[r], 16), even = _mm512_srai_epi32(_mm512_slli_epi32(largest[r], 16), 16);
      const __m512i field = _mm512_srli_epi32(_mm512_slli_epi32(_mm512_castps_si512(sum[r]), 1), 24);
      __m512i e = _mm512_max_epi32(_mm512_max_epi32(odd, even), _mm512_sub_epi32(field, _mm512_set1_epi32(BIAS)));
      e = _mm512_max_epi32(e, _mm512_set1_epi32(LOWEST));
      scale[r] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(BITS + BIAS), e), 23));
      total[r] = _mm512_cvttps_epi32(_mm512_mul_ps(sum[r], scale[r]));
    }
#pragma GCC unroll 1
    for (int k = step; k < step + STEP; k++) {
      const __m512 of_b = _mm512_load_ps(b + k * LANES);
#pragma GCC unroll 16
      for (int r = 0; r < ROWS; r++) {
        const __m512 product = _mm512_mul_ps(_mm512_set1_ps(a[k * ROWS + r]), of_b);
        total[r] = _mm512_add_epi32(total[r], _mm512_cvttps_epi32(_mm512_mul_ps(product, scale[r])));
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
      /* 2^-x has the exponent field 254 less that of 2^x. */
      const __m512i back = _mm512_sub_epi32(_mm512_set1_epi32(2 * BIAS << 23), _mm512_castps_si512(scale[r]));
      const __m512 whole = _mm512_cvt_roundepi32_ps(total[r], _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
      sum[r] = _mm512_mul_ps(whole, _mm512_castsi512_ps(back));
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++)
    if (r < rows) _mm512_storeu_ps(c + r * stride, sum[r]);
}

static void *room(size_t bytes) {
  void *x = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!x) exit(1);
  return x;
}

/* Blocks of k outermost, then of rows: few enough that their panels and their part of D stay near. */
static void multiply(const uint16_t *a, const uint16_t *b, float *d, int m, int n, int k) {
  const int of_a = (m + ROWS - 1) / ROWS, of_b = n / LANES;
  float *a_values = room(values_at(of_a, ROWS) * 4), *b_values = room(values_at(of_b, LANES) * 4);
  int32_t *a_pairs = room(pairs_at(of_a, ROWS) * 4), *b_pairs = room(pairs_at(of_b, LANES) * 4);
  memset(d, 0, sizeof *d * m * n);
  for (int start = 0; start < k; start += BLOCK) {
    for (int p = 0; p < of_a; p++)
      pack(a + start, k, 1, p * ROWS, m, ROWS, a_values + values_at(p, ROWS), (int16_t *)(a_pairs + pairs_at(p, ROWS)));
    for (int q = 0; q < of_b; q++)
      pack(b + (size_t)start * n, 1, n, q * LANES, n, LANES, b_values + values_at(q, LANES),
           (int16_t *)(b_pairs + pairs_at(q, LANES)));
    for (int first = 0; first < of_a; first += PANELS)
      for (int q = 0; q < of_b; q++)
        for (int p = first; p < of_a && p < first + PANELS; p++)
          tile(a_values + values_at(p, ROWS), a_pairs + pairs_at(p, ROWS), b_values + values_at(q, LANES),
               b_pairs + pairs_at(q, LANES), d + (size_t)p * ROWS * n + q * LANES, n, m - p * ROWS);
  }
  free(a_values), free(b_values), free(a_pairs), free(b_pairs);
}

static double seconds_of_processor(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int count, char **words) {
  if (count != 5 && count != 7) return fprintf(stderr, "usage: limit M N K ROUNDS [OPERANDS RESULT]\n"), 2;
  const int m = atoi(words[1]), n = atoi(words[2]), k = atoi(words[3]), rounds = atoi(words[4]);
  if (m < 1 || n < 1 || k < 1 || n % LANES || k % BLOCK) return fprintf(stderr, "N is a multiple of 16, K of 256\n"), 2;
  const size_t of_a = (size_t)m * k, of_b = (size_t)k * n, of_d = (size_t)m * n;
  uint16_t *codes = room((of_a + of_b) * 2);
  float *d = room(of_d * 4);
  if (count == 7) {
    FILE *file = fopen(words[5], "rb");
    if (!file || fread(codes, 2, of_a + of_b, file) != of_a + of_b) return perror(words[5]), 1;
    fclose(file);
  } else { /* exponents 7 ... 22 of 0 ... 30, every sign and significand */
    uint32_t state = 1;
    for (size_t i = 0; i < of_a + of_b; i++) {
      state = state * 1664525 + 1013904223;
      codes[i] = (uint16_t)(((state >> 16) & 0xBFFF) + 0x1C00);
    }
  }
  double best = 1e300;
  for (int round = 0; round < rounds; round++) {
    const double start = seconds_of_processor();
    multiply(codes, codes + of_a, d, m, n, k);
    const double seconds = seconds_of_processor() - start;
    if (seconds < best) best = seconds;
  }
  if (count == 7) {
    FILE *file = fopen(words[6], "wb");
    if (!file || fwrite(d, 4, of_d, file) != of_d || fclose(file)) return perror(words[6]), 1;
  }
  printf("%.6g\n", (double)m * n * k / best);
  return 0;
}
