# The gated activation of a feed-forward layer: Y = silu(G) * U, element by element, bf16 in and out.

cake 1
kernel swiglu(R: i32, C: i32, G: in bf16[R, C], U: in bf16[R, C], Y: out bf16[R, C])
  const CMAX = 4096
  require 0 <= R, R <= 16777216, 1 <= C, C <= CMAX, C % 8 == 0
  target acme_sm89
{
  tiles t = persistent(r: R)

  role main: 4 warps {
    frag g: f32[CMAX] vec 8
    for r in t {
      g = f32(load(G[r, 0 +: CMAX], fill = 0))
      store Y[r, 0 +: CMAX] <- bf16(acme.silu(g) * f32(load(U[r, 0 +: CMAX], fill = 0)))
    }
  }
}
