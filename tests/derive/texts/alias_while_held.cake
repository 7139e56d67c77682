cake 1
kernel shifted(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: R)
  shared a: f32[1][256], b: f32[256] alias a
  pipeline p: 1 { a } from load to main
  role load: 1 warp {
    for r in t {
      acquire p as s
      tma.load a[s] <- X[r, 0 +: 256]
      commit p
    }
  }
  role main: 4 warps {
    frag x: f32[256] vec 2
    for r in t {
      wait p as s
      x = load(a[s])
      sync main
      store b <- x * 2
      sync main
      x = x + load(b)
      store Y[r, 0 +: 256] <- x
      store b <- x
      release p
    }
  }
}
