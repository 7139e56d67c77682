cake 1
kernel rmsnorm(R: i32, C: i32, X: in bf16[R, C], W: in bf16[C], Y: out bf16[R, C], eps: f32)
  const CMAX = 8192, WARPS = 8
  require 0 <= R, 1 <= C, C <= CMAX, C % 8 == 0
  target sm80, sm90, sm100
{
  tiles t = persistent(r: R)                       # t.n: how many items this CTA has done
  shared part: f32[2][WARPS]
  role main: WARPS warps {
    frag x: f32[CMAX] vec 8, w: bf16[CMAX] vec 8   # S6: 1-D fragment over all threads of the role, 8 neighbours a thread
    w = load(W[0 +: CMAX], fill = 0)                   # read once for all rows
    for r in t {
      x = f32(load(X[r, 0 +: CMAX], fill = 0))         # clipped at C
      store part[t.n % 2][warp] <- warpsum(x * x)  # one value a warp; two slots, so one barrier a row is enough
      sync main
      let inv = rsqrt(sum(load(part[t.n % 2])) / f32(C) + eps)     # uniform value: each thread adds the same 8 in the same order
      store Y[r, 0 +: CMAX] <- bf16(x * inv * f32(w))
    }
  }
}
