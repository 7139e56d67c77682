cake 1
kernel crossed(M: i32, N: i32, Y: out i32[M], Z: out i32[N], A: workspace i32[1], B: workspace i32[1])
  require 1 <= M, M <= 1000, 1 <= N, N <= 1000
  target sm90
{
  tiles t = persistent(m: M) dynamic A
  tiles u = persistent(n: N) dynamic B
  role one: 1 warp {
    for m in t {
      store Y[m] <- m
    }
    for n in u {
      store Z[n] <- n
    }
  }
  role other: 1 warp {
    for n in u {
    }
    for m in t {
    }
  }
}
