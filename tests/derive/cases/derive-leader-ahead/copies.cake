cake 1
kernel k(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: R)
  shared x: f32[2][256]
  pipeline p: 2 { x } from give to take_
  role give: 2 warps {
    for r in t {
      acquire p as s
      tma.load x[s] <- X[r, 0 +: 256]
      commit p
    }
  }
  role take_: 1 warp {
    frag y: f32[256] vec 8
    for r in t {
      wait p as s
      y = load(x[s])
      release p
      store Y[r, 0 +: 256] <- y
    }
  }
}
