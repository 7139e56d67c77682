cake 1
kernel sums(R: i32, X: in f32[R, 256], Y: out f32[R, 2])
  require 1 <= R, R <= 1048576
  target sm90
{
  tiles t = persistent(r: R)
  shared x: f32[4][256]
  pipeline p: 4 { x } from load to sum
  role load: 1 warp {
    for r in t {
      acquire p as s
      tma.load x[s] <- X[r, 0 +: 256]
      commit p
    }
  }
  role sum: 2 warps {
    frag v: f32[256] vec 4
    for r in t {
      wait p as s
      v = load(x[s])
      release p
      store Y[r, warp] <- warpsum(v)
    }
  }
}
