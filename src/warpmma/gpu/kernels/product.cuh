// A product of batches of matrices: what a launch says, where chains end, and how sums become results.

#if GATHERED
typedef Gathered Factor;
#else
typedef Strides Factor;
#endif

struct Product {
  const void *a, *b, *c;
  const u8 *chosen, *scale_a, *scale_b;  // of a sparse A: which row of its instruction each stored element meets
  const float *alpha, *other_alpha;      // there may be others, by which they are multiplied
  void* d;
  Factor of_a, of_b;
  Strides of_c, of_chosen, of_scale_a, of_scale_b;
  s64 of_alpha, of_other_alpha;
  s64 of_index;                      // of indices in place: between the two of a group; strides of bytes, as of_chosen
  int m, n, k;                       // k as A has it: of a sparse one what is stored
  int blocks;                        // scales of a row
  int instructions, promote;         // of all of k; of a chain within a slice
  int slices, lengths[MOST_SLICES];  // in instructions
#if GATHERED
  const void* bias;  // of columns, batch by batch, in the type of the result; added to the sums
  Target of_d;
#endif
};

// Elements of C as accumulators, and results as codes.
template <class Format>
__device__ __forceinline__ Value value_of(Code code) {
  if constexpr (Format::integer)
    return Value(code);
  else if constexpr (Format::width == 64)
    return __longlong_as_double(s64(code));
  else
    return decode<Format>(u32(code));
}

template <class Format, class Rounded>
__device__ __forceinline__ u64 result_of(Value value, const Product& g, s64 batch) {
  if constexpr (Format::integer) {
    return u32(value);
  } else if constexpr (Format::width == 64) {
    return u64(__double_as_longlong(value));
  } else {
    float x = value;
#if HAS_ALPHA
    float alpha = g.alpha[batch * g.of_alpha];
    if (g.other_alpha) alpha = alpha * g.other_alpha[batch * g.of_other_alpha];
    x = Format::width == 32 ? x * alpha : decode<Format>(encode<Format>(double(x) * double(alpha)));
#endif
    if constexpr (Rounded::width == 32 && Rounded::padding == 0)
      return (bits(x) & MAGNITUDE) > INFINITE ? NOT_A_NUMBER : bits(x);
    else
      return encode<Rounded>(double(x));
  }
}

#if HAS_BIAS
__device__ __forceinline__ Value with_bias(Value sum, Code bias) {
  const Value addend = value_of<Result>(bias);
#if CHAINS_OF_FMA
  if constexpr (sizeof(Value) == 8) return fused_with_nan(sum, 1.0, addend);
#endif
  return D::width == 16 ? Value(to_half(sum + addend)) : sum + addend;  // f32 holds enough for the second rounding
}
#endif

__device__ __forceinline__ void put_result(void* to, s64 index, u64 code) {
  if constexpr (Result::bytes == 1) static_cast<u8*>(to)[index] = u8(code);
  if constexpr (Result::bytes == 2) static_cast<u16*>(to)[index] = u16(code);
  if constexpr (Result::bytes == 4) static_cast<u32*>(to)[index] = u32(code);
  if constexpr (Result::bytes == 8) static_cast<u64*>(to)[index] = code;
}

// Where chains end: lengths of slices, and of chains within them, in instructions.
struct Ends {
  int slice_left, chain_left, slice;
  __device__ Ends(const Product& g) : slice(0) { begin(g); }
  __device__ void begin(const Product& g) {
    slice_left = g.lengths[slice];
    chain_left = min(g.promote, slice_left);
  }
};
