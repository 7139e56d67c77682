cake 1
kernel crossed(R: i32, N: i32, X: in f32[R, N, 256], W: in f32[R, N, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536, 1 <= N, N <= 65536
  target sm90
{
  tiles t = persistent(r: R)
  shared k: f32[1][256], v: f32[1][256]
  pipeline kp: 1 { k } from load to work
  pipeline vp: 1 { v } from load to work
  role load: 1 warp {
    for r in t {
      for j in 0 .. N {
        acquire vp as b
        tma.load v[b] <- W[r, j, 0 +: 256]
        commit vp
        acquire kp as a
        tma.load k[a] <- X[r, j, 0 +: 256]
        commit kp
      }
    }
  }
  role work: 1 warp {
    frag x: f32[256] vec 4, y: f32[256] vec 4
    for r in t {
      y = 0
      wait kp as a
      x = load(k[a])
      release kp
      for j in 1 .. N {
        wait kp as a
        wait vp as b
        y = y + x * load(v[b])
        release vp
        x = load(k[a])
        release kp
      }
      wait vp as b
      y = y + x * load(v[b])
      release vp
      store Y[r, 0 +: 256] <- y
    }
  }
}
