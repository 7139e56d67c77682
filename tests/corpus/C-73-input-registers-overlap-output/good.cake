cake 1 derived
kernel product(M: i32, K: i32, A: in bf16[M, K], B: in bf16[64, K], D: out f32[M, 64])
  require 1 <= M, M <= 65536, 64 <= K, K <= 65536, K % 64 == 0
  target sm90
{
  launch ceildiv(M, 64)
  shared a: bf16[64, 64] at 0 swizzle 128, b: bf16[64, 64] at 8192 swizzle 128
  barrier full: mbarrier[1] count 1 at 16384
  if leader {
    mbarrier.init full
    fence.mbarrier_init
  }
  cta.sync
  role math: 1 warpgroup at 0 {
    frag acc: f32[64, 64] layout mma, p: bf16[64, 64] layout mma
    let m = cluster.id
    acc = 0.0
    for k in 0 .. K / 64 {
      if leader {
        mbarrier.expect full[0] bytes 16384
        tma.load a <- A[m * 64 +: 64, k * 64 +: 64] signal full[0]
        tma.load b <- B[0 +: 64, k * 64 +: 64] signal full[0]
      }
      mbarrier.wait full[0] parity k % 2
      ldmatrix p <- a
      wgmma.fence
      wgmma acc += p @ b.T
      wgmma.commit
      wgmma.wait 0
      bar.sync 1 threads 128
    }
    store D[m * 64 +: 64, 0 +: 64] <- acc by 8
  }
}
