cake 1 derived
kernel copy(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch min(R, 16)
  shared s: f32[3][256] at 0
  barrier full: mbarrier[3] count 1 at 3072
  if leader {
    mbarrier.init full
    fence.mbarrier_init
  }
  cta.sync
  role move: 1 warp at 0 {
    var n = 0
    let first = cluster.id
    if leader {
      mbarrier.expect full[0] bytes 1024
      tma.load s[0] <- X[first, 0 +: 256] signal full[0]
    }
    for r in first .. R step cluster.count {
      if r + cluster.count < R {
        if leader {
          tma.store.wait.read 1
          mbarrier.expect full[(n + 1) % 3] bytes 1024
          tma.load s[(n + 1) % 3] <- X[r + cluster.count, 0 +: 256] signal full[(n + 1) % 3]
        }
      }
      mbarrier.wait full[n % 3] parity n / 3 % 2
      if leader {
        tma.store Y[r, 0 +: 256] <- s[n % 3]
        tma.store.commit
      }
      n = n + 1
    }
    if leader {
      tma.store.wait.read 0
    }
  }
}
