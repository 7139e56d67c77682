cake 1 derived
kernel tokens(R: i32, N: in i32[R], Y: inout i32[1], X: in f32[2, 32])
  require 1 <= R, R <= 65536
  target sm90
{
  launch 1
  shared m: i32[1] at 16
  barrier b: mbarrier[1] count 1 at 0
  barrier c: mbarrier[1] count 1 at 8
  if leader {
    mbarrier.init b
    mbarrier.init c
    fence.mbarrier_init
  }
  cta.sync
  role one: 1 warp at 0 {
    var n = 0
    frag x: f32[32] vec 1 layout vector
    x = load(X[0, 0 +: 32], by = 4)
    for k in 0 .. load(Y[0], by = 4) {
      mbarrier.wait c[0] parity (n + 1) % 2
      if leader {
        mbarrier.arrive b[0]
      }
      n = n + 1
    }
  }
  role other: 1 warp at 1 {
    var n = 0
    frag x: f32[32] vec 1 layout vector
    x = load(X[1, 0 +: 32], by = 4)
    for k in 0 .. load(Y[0], by = 4) {
      mbarrier.wait b[0] parity n % 2
      if leader {
        mbarrier.arrive c[0]
      }
      n = n + 1
    }
    if leader {
      store Y[0] <- 0 by 4
    }
  }
}
