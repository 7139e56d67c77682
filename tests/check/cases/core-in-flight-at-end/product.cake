cake 1 derived
kernel mm(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536, 0 <= K, K <= 65536, N % 8 == 0, K % 8 == 0
  target sm90
{
  let nk = ceildiv(K, 64)
  let t_m = ceildiv(M, 64), t_n = ceildiv(N, 128)
  launch t_m * t_n persistent
  shared a: bf16[4][64, 64] at 0 swizzle 128, b: bf16[4][128, 64] at 32768 swizzle 128
  barrier ab_full: mbarrier[4] count 1 at 98304
  barrier ab_empty: mbarrier[4] count 1 at 98336
  if leader {
    mbarrier.init ab_full
    mbarrier.init ab_empty
    fence.mbarrier_init
  }
  cta.sync
  role load: 1 warp at 0 {
    var ab_fill = 0
    for t_i in cluster.id .. t_m * t_n step cluster.count {
      let m = t_i % t_m, n = t_i / t_m
      for k in 0 .. nk {
        let s = ab_fill % 4
        mbarrier.wait ab_empty[s] parity (ab_fill / 4 + 1) % 2
        ab_fill = ab_fill + 1
        if leader {
          mbarrier.expect ab_full[s] bytes 24576
          tma.load a[s] <- A[m * 64 +: 64, k * 64 +: 64] signal ab_full[s]
          tma.load b[s] <- B[n * 128 +: 128, k * 64 +: 64] signal ab_full[s]
        }
      }
    }
  }
  role math: 1 warpgroup at 4 {
    var ab_wait = 0
    var ab_release = 0
    frag acc: f32[64, 128] layout mma
    acc = 0
    for t_i in cluster.id .. t_m * t_n step cluster.count {
      let m = t_i % t_m, n = t_i / t_m
      for k in 0 .. nk {
        let s = ab_wait % 4
        mbarrier.wait ab_full[s] parity ab_wait / 4 % 2
        ab_wait = ab_wait + 1
        wgmma.fence
        wgmma acc += a[s] @ b[s].T
        wgmma.commit
        if leader { mbarrier.arrive ab_empty[ab_release % 4] }
        ab_release = ab_release + 1
      }
    }
  }
}
