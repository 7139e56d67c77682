cake 1
kernel k(R: i32, Y: out i32[R, 4])
  require 0 <= R, R <= 65536
  target sm90
  cluster c = 2
{
  tiles t = persistent(c: 2, r: R)
  shared x: i32[2][2, 4]
  pipeline p: 2 { x } from give to take_
  role give: 4 warps {
    for (c, r) in t {
      acquire p as s
      for k in 0 .. 2 unroll {
        cluster.send x[s][c, 0] <- r at k
      }
      commit p
    }
  }
  role take_: 1 warp {
    for (c, r) in t {
      wait p as s
      store Y[r, c] <- load(x[s][c, 0])
      release p
    }
  }
}
