cake 1 derived
kernel chain(R: i32, LEN: in i32[R], X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm100
{
  launch R persistent
  barrier go: mbarrier[1] count 1 at 0
  barrier back: mbarrier[1] count 4 at 8
  if leader {
    mbarrier.init go
    mbarrier.init back
    fence.mbarrier_init
  }
  cta.sync
  role first: 1 warp at 0 {
    var credit = 0
    for r in cluster.id .. R step cluster.count {
      let n = load(LEN[r], by = 4)
      mbarrier.wait back[0] parity (credit + 1) % 2
      credit = credit + 1
      if leader {
        mbarrier.arrive go[0]
      }
    }
  }
  role second: 4 warps at 1 {
    var turn_n = 0
    frag x: f32[256] vec 2 layout vector
    for r in cluster.id .. R step cluster.count {
      let n = load(LEN[r], by = 4)
      mbarrier.wait go[0] parity turn_n % 2
      turn_n = turn_n + 1
      x = load(X[r, 0 +: 256], by = 8)
      warp.sync
      if warp.leader {
        mbarrier.arrive back[0]
      }
      store Y[r, 0 +: 256] <- x by 8
    }
  }
}
