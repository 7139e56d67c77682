cake 1
kernel sums(R: i32, X: in f32[R, 32], Y: out f32[R, 2])
  require 1 <= R, R <= 1048576
  target sm90
{
  tiles t = persistent(r: ceildiv(R, 512))
  shared x: f32[2][512, 32]
  pipeline p: 2 { x } from load to sum
  role load: 1 warp {
    for r in t {
      acquire p as s
      tma.load x[s] <- X[r * 512 +: 512, 0 +: 32]
      commit p
    }
  }
  role sum: 1 warp {
    frag v: f32[32] vec 1
    for r in t {
      wait p as s
      v = load(x[s][0, :])
      release p
      store Y[r, warp] <- warpsum(v)
    }
  }
}
