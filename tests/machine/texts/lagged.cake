cake 1 derived
kernel lagged(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out f32[M, N])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536, 0 <= K, K <= 65536, N % 4 == 0, K % 8 == 0
  target sm90
{
  let nk = ceildiv(K, 64)
  launch ceildiv(M, 64)
  shared a: bf16[3][64, 64] at 0 swizzle 128, b: bf16[3][64, 64] at 24576 swizzle 128
  barrier full: mbarrier[3] count 1 at 49152
  barrier empty: mbarrier[3] count 1 at 49176
  if leader {
    mbarrier.init full
    mbarrier.init empty
    fence.mbarrier_init
  }
  cta.sync
  role load: 1 warp at 0 {
    var fill = 0
    for k in 0 .. nk {
      let s = fill % 3
      mbarrier.wait empty[s] parity (fill / 3 + 1) % 2
      if leader {
        mbarrier.expect full[s] bytes 16384
        tma.load a[s] <- A[cluster.id * 64 +: 64, k * 64 +: 64] signal full[s]
        tma.load b[s] <- B[0 +: 64, k * 64 +: 64] signal full[s]
      }
      fill = fill + 1
    }
  }
  role math: 1 warpgroup at 4 {
    var waited = 0, given = 0
    frag acc: f32[64, 64] layout mma
    acc = 0.0
    for k in 0 .. nk {
      let s = waited % 3
      mbarrier.wait full[s] parity waited / 3 % 2
      waited = waited + 1
      wgmma.fence
      wgmma acc += a[s] @ b[s].T
      wgmma.commit
      if k > 0 {
        wgmma.wait 1
        if leader {
          mbarrier.arrive empty[given % 3]
        }
        given = given + 1
      }
    }
    wgmma.wait 0
    if given < waited {
      if leader {
        mbarrier.arrive empty[given % 3]
      }
      given = given + 1
    }
    store D[cluster.id * 64 +: 64, 0 +: 64] <- acc by 8
  }
}
