cake 1
kernel amax(R: i32, X: in bf16[R, 64], Y: out f32[R])
  require 1 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: ceildiv(R, 64))
  shared s: bf16[2][64, 8]
  pipeline p: 2 { s } from load to work
  role load: 1 warp {
    for r in t {
      acquire p as i
      tma.load s[i] <- X[r * 64 +: 64, 0 +: 8]
      commit p
    }
  }
  role work: 1 warp {
    for r in t {
      wait p as i
      let top = maximum(f32(load(s[i][0, :])))
      release p
      store Y[r * 64] <- top
    }
  }
}
