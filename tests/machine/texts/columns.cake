cake 1 derived
kernel columns(M: i32, K: i32, A: in bf16[M, K], B: in bf16[64, K], D: out f32[M, 64])
  require 1 <= M, M <= 65536, 1 <= K, K <= 65536, K % 8 == 0
  target sm100
{
  let nk = ceildiv(K, 64), t_m = ceildiv(M, 128)
  launch t_m persistent
  shared a: bf16[2][128, 64] at 0 swizzle 128, b: bf16[2][64, 64] at 32768 swizzle 128
  shared tmem_at: u32[1] at 49152
  barrier full: mbarrier[2] count 1 at 49160
  barrier empty: mbarrier[2] count 1 at 49176
  barrier acc_full: mbarrier[1] count 1 at 49192
  barrier acc_empty: mbarrier[1] count 4 at 49200
  if leader {
    mbarrier.init full
    mbarrier.init empty
    mbarrier.init acc_full
    mbarrier.init acc_empty
    fence.mbarrier_init
  }
  if warp == 0 {
    warp.sync
    tcgen05.alloc tmem_at[0] columns 64
    tcgen05.relinquish
  }
  cta.sync
  let tmem_base = load(tmem_at[0], by = 4)
  tmem acc: f32[128, 64] at 0 base tmem_base
  role load: 1 warp at 0 {
    var fill = 0
    for t_i in cluster.id .. t_m step cluster.count {
      for k in 0 .. nk {
        let s = fill % 2
        mbarrier.wait empty[s] parity (fill / 2 + 1) % 2
        fill = fill + 1
        if leader {
          mbarrier.expect full[s] bytes 24576
          tma.load a[s] <- A[t_i * 128 +: 128, k * 64 +: 64] signal full[s]
          tma.load b[s] <- B[0 +: 64, k * 64 +: 64] signal full[s]
        }
      }
    }
    for last in 0 .. 2 {
      mbarrier.wait empty[fill % 2] parity (fill / 2 + 1) % 2
      fill = fill + 1
    }
  }
  role mma: 1 warp at 1 {
    var waited = 0
    var filled = 0
    for t_i in cluster.id .. t_m step cluster.count {
      mbarrier.wait acc_empty[0] parity (filled + 1) % 2
      tcgen05.fence.after
      filled = filled + 1
      for k in 0 .. nk {
        let s = waited % 2
        mbarrier.wait full[s] parity waited / 2 % 2
        waited = waited + 1
        if leader {
          tcgen05.mma acc += a[s] @ b[s].T init k == 0
          tcgen05.commit empty[s]
        }
      }
      if leader {
        tcgen05.commit acc_full[0]
      }
    }
  }
  role epi: 4 warps at 4 {
    var waited = 0
    frag x: f32[128, 64] layout tmem
    for t_i in cluster.id .. t_m step cluster.count {
      mbarrier.wait acc_full[0] parity waited % 2
      tcgen05.fence.after
      waited = waited + 1
      tcgen05.ld x <- acc
      tcgen05.wait.ld
      tcgen05.fence.before
      warp.sync
      if warp.leader {
        mbarrier.arrive acc_empty[0]
      }
      store D[t_i * 128 +: 128, 0 +: 64] <- x by 16
    }
  }
  warp.sync
  cta.sync
  if warp == 0 {
    warp.sync
    tcgen05.fence.after
    tcgen05.dealloc tmem_base columns 64
  }
}
