cake 1
kernel rows_ahead(R: i32, C: i32, N: in i32[R], W: in f32[R, C, 256], X: in f32[R, C, 256], Y: out f32[R, C, 256], NEXT: workspace i32[1])
  require 0 <= R, R <= 65536, 0 <= C, C <= 256
  target sm90
{
  tiles t = persistent(r: R, c: C) dynamic NEXT
  shared a: f32[2][256]
  pipeline p: 2 { a } from load to main
  role load: 1 warp {
    for (r, c) in t {
      for k in 0 .. 3 {
        acquire p as s
        tma.load a[s] <- X[r, c, 0 +: 256]
        commit p
      }
    }
  }
  role main: 4 warps {
    frag w: f32[256] vec 2, ahead: f32[256] vec 2
    ahead = 0
    for (r, c) in t {
      w = ahead
      if t.n == 0 {
        w = load(W[r, c, 0 +: 256])
      }
      if t.next.c < C {
        ahead = load(W[t.next.r, t.next.c, 0 +: 256])
      }
      for k in 0 .. 3 {
        wait p as s
        w = w * load(a[s])
        release p
      }
      store Y[r, c, 0 +: 256] <- w
    }
  }
}
