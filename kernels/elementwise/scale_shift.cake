# Y[b, r, c] = X[b, r, c] * S[b, r] + T[b, c]: a column repeated over all columns, and a row repeated over the rows of its matrix.
# X, T, Y in bf16, S in f32, computed in f32.
#
# A warp takes BR rows and BC columns of one matrix: reads them and what is repeated over them, and writes the result, 16 bytes a lane
# and access. Edges are clipped: nothing is read or written past the last row and the last column.

cake 1
kernel scale_shift(B: i32, R: i32, C: i32, X: in bf16[B, R, C], S: in f32[B, R], T: in bf16[B, C], Y: out bf16[B, R, C])
  # A CTA takes WARPS * BR rows of BC columns. BC is a multiple of 256: 8 elements a lane.
  const BC = 512, BR = 2, WARPS = 8
  # Upper bounds: indices are i32 and may not overflow. Multiples of 8: accesses of 16 bytes.
  require 0 <= B, B <= 65536, 0 <= R, R <= 1048576, 1 <= C, C <= 1048576, C % 8 == 0
  target sm80, sm90, sm100
{
  tiles t = grid(c: ceildiv(C, BC), r: ceildiv(R, BR * WARPS), b: B)  # neighbouring CTAs read neighbouring columns

  role main[WARPS]: 1 warp {
    frag x: bf16[BR, BC] vec 8
    for (c, r, b) in t {
      let c0 = c * BC, r0 = (r * WARPS + main.i) * BR
      x = load(X[b, r0 +: BR, c0 +: BC], fill = 0)
      let scale = load(S[b, r0 +: BR], along = rows(x), fill = 0)
      let shift = load(T[b, c0 +: BC], along = cols(x), fill = 0)
      store Y[b, r0 +: BR, c0 +: BC] <- bf16(f32(x) * scale + f32(shift))
    }
  }
}
