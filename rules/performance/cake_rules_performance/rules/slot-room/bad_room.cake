cake 1
kernel amax(R: i32, X: in bf16[R, 256], Y: out bf16[R, 256])
  const ST = 2, BR = 128
  require 1 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: ceildiv(R, BR))
  shared s: bf16[ST][BR, 256]
  pipeline p: ST { s } from load to work
  role load: 1 warp {
    for r in t {
      acquire p as i
      tma.load s[i] <- X[r * BR +: BR, 0 +: 256]
      commit p
    }
  }
  role work: 1 warp {
    frag x: bf16[256] vec 8
    for r in t {
      wait p as i
      for k in 0 .. BR {
        x = load(s[i][k, :])
        if r * BR + k < R {
          store Y[r * BR + k, 0 +: 256] <- x
        }
      }
      release p
    }
  }
}
