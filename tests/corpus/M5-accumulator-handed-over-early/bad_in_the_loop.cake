cake 1 derived
kernel gemm(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out f32[M, N])
  require 1 <= M, M <= 65536, 1 <= N, N <= 65536, 1 <= K, K <= 65536, N % 4 == 0, K % 8 == 0
  target sm100
{
  let nk = ceildiv(K, 64)
  let t_m = ceildiv(M, 128), t_n = ceildiv(N, 64)
  let t_total = t_m * t_n
  launch t_total persistent
  shared a: bf16[4][128, 64] at 0 swizzle 128, b: bf16[4][64, 64] at 65536 swizzle 128
  shared tmem_at: u32[1] at 98304
  barrier ab_full: mbarrier[4] count 1 at 98312
  barrier ab_empty: mbarrier[4] count 1 at 98344
  barrier done_full: mbarrier[2] count 1 at 98376
  barrier done_empty: mbarrier[2] count 4 at 98392
  if leader {
    mbarrier.init ab_full
    mbarrier.init ab_empty
    mbarrier.init done_full
    mbarrier.init done_empty
    fence.mbarrier_init
  }
  if warp == 0 {
    warp.sync
    tcgen05.alloc tmem_at[0] columns 128
    tcgen05.relinquish
  }
  cta.sync
  let tmem_base = load(tmem_at[0], by = 4)
  tmem acc: f32[2][128, 64] at 0 base tmem_base
  role load: 1 warp at 0 {
    var ab_fill = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let m = t_i % t_m, n = t_i / t_m
      for k in 0 .. nk {
        let s = ab_fill % 4
        mbarrier.wait ab_empty[s] parity (ab_fill / 4 + 1) % 2
        ab_fill = ab_fill + 1
        if leader {
          mbarrier.expect ab_full[s] bytes 24576
          tma.load a[s] <- A[m * 128 +: 128, k * 64 +: 64] signal ab_full[s]
          tma.load b[s] <- B[n * 64 +: 64, k * 64 +: 64] signal ab_full[s]
        }
      }
    }
    for ab_last in 0 .. 4 {
      mbarrier.wait ab_empty[ab_fill % 4] parity (ab_fill / 4 + 1) % 2
      ab_fill = ab_fill + 1
    }
  }
  role mma: 1 warp at 1 {
    var ab_wait = 0
    var ab_release = 0
    var done_fill = 0
    var done_commit = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let m = t_i % t_m, n = t_i / t_m
      let u = done_fill % 2
      mbarrier.wait done_empty[u] parity (done_fill / 2 + 1) % 2
      tcgen05.fence.after
      done_fill = done_fill + 1
      for k in 0 .. nk {
        let s = ab_wait % 4
        mbarrier.wait ab_full[s] parity ab_wait / 4 % 2
        tcgen05.fence.after
        ab_wait = ab_wait + 1
        if leader {
          tcgen05.mma acc[u] += a[s] @ b[s].T init k == 0
          tcgen05.commit ab_empty[ab_release % 4]
        }
        ab_release = ab_release + 1
        if k == 0 {
          if leader {
            tcgen05.commit done_full[done_commit % 2]
          }
          done_commit = done_commit + 1
        }
      }
    }
  }
  role epi: 4 warps at 4 {
    var done_wait = 0
    var done_release = 0
    frag x: f32[128, 64] layout tmem
    for t_i in cluster.id .. t_total step cluster.count {
      let m = t_i % t_m, n = t_i / t_m
      let u = done_wait % 2
      mbarrier.wait done_full[u] parity done_wait / 2 % 2
      tcgen05.fence.after
      done_wait = done_wait + 1
      tcgen05.ld x <- acc[u]
      tcgen05.wait.ld
      tcgen05.fence.before
      warp.sync
      if warp.leader {
        mbarrier.arrive done_empty[done_release % 2]
      }
      done_release = done_release + 1
      store D[m * 128 +: 128, n * 64 +: 64] <- x by 16
    }
  }
  warp.sync
  cta.sync
  if warp == 0 {
    warp.sync
    tcgen05.fence.after
    tcgen05.dealloc tmem_base columns 128
  }
}
