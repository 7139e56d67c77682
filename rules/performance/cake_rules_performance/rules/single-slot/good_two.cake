cake 1
kernel amax(R: i32, X: in f32[R, 256], Y: out f32[R])
  const ST = 2
  require 0 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: R)
  shared s: f32[ST][256]
  pipeline p: ST { s } from load to work
  role load: 1 warp {
    for r in t {
      acquire p as i
      tma.load s[i] <- X[r, 0 +: 256]
      commit p
    }
  }
  role work: 1 warp {
    frag x: f32[256] vec 4
    for r in t {
      wait p as i
      x = load(s[i])
      release p
      store Y[r] <- warpmax(abs(x))
    }
  }
}
