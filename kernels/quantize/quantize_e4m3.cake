# Rows to 8 bits: S[r] = max |X[r, :]| / 448 and Y[r, c] = X[r, c] / S[r] in e4m3, so that X is about S * Y; X in bf16, S in f32.
#
# One row a CTA and eight warps a row; the row stays in registers between its one read and its one write, 3 bytes an element in all.
# Several CTAs fit on a multiprocessor and come and go with their rows, so the reads of one overlap the work of others.
#
# 448 is the largest number of e4m3. A row of zeros has S = 0 and Y = 0. A row with a NaN has S = NaN and Y = NaN; one with an
# infinity has S = inf, NaN in place of the infinities and 0 elsewhere.

cake 1
kernel quantize_e4m3(R: i32, C: i32, X: in bf16[R, C], Y: out e4m3[R, C], S: out f32[R])
  # CMAX is the longest row: 32 elements a thread at eight warps. Shorter rows leave the rest at 0, which is no maximum.
  const CMAX = 8192, WARPS = 8
  # LEAST is added so that the reciprocal stays finite for a row of zeros; what is above 1e-22 does not notice.
  const LARGEST = 448.0, LEAST = 1.0e-30
  # The upper bound of R keeps item numbers in i32. Multiples of 16: accesses of 16 bytes of Y.
  require 0 <= R, R <= 16777216, 1 <= C, C <= CMAX, C % 16 == 0
  target sm90, sm100
{
  tiles t = grid(r: R)
  shared part: f32[WARPS]

  role main: WARPS warps {
    frag x: bf16[CMAX] vec 16
    for r in t {
      x = load(X[r, 0 +: CMAX], fill = 0)
      store part[warp] <- warpmax(abs(f32(x)))  # one value a warp
      sync main
      let top = maximum(load(part))
      store S[r] <- top / LARGEST
      store Y[r, 0 +: CMAX] <- e4m3(f32(x) * (LARGEST * rcp(top + LEAST)))
    }
  }
}
