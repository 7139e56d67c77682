# Y[r, c] = silu(A[r, c]) * B[r, c] + BIAS[c], silu(x) = x / (1 + exp(-x)): a matrix by a matrix, and a row repeated over all rows.
# bf16 in and out, f32 in between.
#
# A warp takes BR rows and BC columns: reads them and what is repeated over them, and writes the result, 16 bytes a lane and access.
# Edges are clipped: nothing is read or written past the last row and the last column.

cake 1
kernel silu_mul_bias(R: i32, C: i32, A: in bf16[R, C], B: in bf16[R, C], BIAS: in bf16[C], Y: out bf16[R, C])
  # A CTA takes WARPS * BR rows of BC columns. BC is a multiple of 256: 8 elements a lane.
  const BC = 512, BR = 2, WARPS = 8
  const LOG2E = 1.4426950408889634
  # Upper bounds: indices are i32 and may not overflow. Multiples of 8: accesses of 16 bytes.
  require 0 <= R, R <= 16777216, 1 <= C, C <= 16777216, C % 8 == 0
  target sm80, sm90, sm100
{
  tiles t = grid(c: ceildiv(C, BC), r: ceildiv(R, BR * WARPS))  # neighbouring CTAs read neighbouring columns

  role main[WARPS]: 1 warp {
    frag a: bf16[BR, BC] vec 8, b: bf16[BR, BC] vec 8
    for (c, r) in t {
      let c0 = c * BC, r0 = (r * WARPS + main.i) * BR
      a = load(A[r0 +: BR, c0 +: BC], fill = 0)
      b = load(B[r0 +: BR, c0 +: BC], fill = 0)
      let bias = load(BIAS[c0 +: BC], along = cols(a), fill = 0)
      let x = f32(a)
      store Y[r0 +: BR, c0 +: BC] <- bf16(x * rcp(exp2(x * -LOG2E) + 1) * f32(b) + f32(bias))
    }
  }
}
