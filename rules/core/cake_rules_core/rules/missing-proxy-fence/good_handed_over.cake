cake 1 derived
kernel copy(R: i32, X: in bf16[R, 64], Y: out bf16[R, 64])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: bf16[2][64, 64] at 0 swizzle 128
  barrier full: mbarrier[2] count 4 at 16384, empty: mbarrier[2] count 1 at 16400
  if leader {
    mbarrier.init full
    mbarrier.init empty
    fence.mbarrier_init
  }
  cta.sync
  role main: 1 warpgroup at 0 {
    frag x: f32[64, 64] layout mma
    var n = 0
    for r in cluster.id .. R step cluster.count {
      x = f32(load(X[r * 64 +: 64, 0 +: 64], fill = 0, by = 4))
      mbarrier.wait empty[n % 2] parity (n / 2 + 1) % 2
      store s[n % 2] <- bf16(x) by stmatrix
      fence.proxy.async
      warp.sync
      if warp.leader { mbarrier.arrive full[n % 2] }
      n = n + 1
    }
  }
  role out: 1 warp at 4 {
    var n = 0
    for r in cluster.id .. R step cluster.count {
      mbarrier.wait full[n % 2] parity n / 2 % 2
      if leader {
        tma.store Y[r * 64 +: 64, 0 +: 64] <- s[n % 2]
        tma.store.commit
        tma.store.wait.read 0
        mbarrier.arrive empty[n % 2]
      }
      n = n + 1
    }
  }
}
