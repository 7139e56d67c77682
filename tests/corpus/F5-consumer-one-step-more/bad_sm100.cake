cake 1 derived
kernel gemm_sm100(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  target sm100
{
  let nk = ceildiv(K, 64)
  let t_m = ceildiv(M, 128), t_n = ceildiv(N, 256)
  let t_total = t_m * t_n
  launch t_total persistent
  shared a: bf16[4][128, 64] at 0 swizzle 128
  shared b: bf16[4][256, 64] at 65536 swizzle 128
  shared d: bf16[2][128, 64] at 196608 swizzle 128
  shared tmem_at: u32[1] at 229376
  barrier ab_full: mbarrier[4] count 1 at 229384
  barrier ab_empty: mbarrier[4] count 1 at 229416
  barrier accp_full: mbarrier[2] count 1 at 229448
  barrier accp_empty: mbarrier[2] count 4 at 229464
  if leader {
    mbarrier.init ab_full
    mbarrier.init ab_empty
    mbarrier.init accp_full
    mbarrier.init accp_empty
    fence.mbarrier_init
  }
  if warp == 0 {
    warp.sync
    tcgen05.alloc tmem_at[0] columns 512
    tcgen05.relinquish
  }
  cta.sync
  let tmem_base = load(tmem_at[0], by = 4)
  tmem acc: f32[2][128, 256] at 0 base tmem_base
  role load: 1 warp at 0 {
    var ab_fill = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let t_group = t_n * 8
      let t_start = t_i / t_group * 8
      let t_height = clamp(t_m - t_start, 1, 8)
      let t_inside = t_i % t_group
      let m = t_start + t_inside % t_height, n = t_inside / t_height
      for k in 0 .. nk {
        let s = ab_fill % 4
        mbarrier.wait ab_empty[s] parity (ab_fill / 4 + 1) % 2
        ab_fill = ab_fill + 1
        if leader {
          mbarrier.expect ab_full[s] bytes 49152
          tma.load a[s] <- A[m * 128 +: 128, k * 64 +: 64] signal ab_full[s]
          tma.load b[s] <- B[n * 256 +: 256, k * 64 +: 64] signal ab_full[s]
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
    var accp_fill = 0
    var accp_commit = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let t_group = t_n * 8
      let t_start = t_i / t_group * 8
      let t_height = clamp(t_m - t_start, 1, 8)
      let t_inside = t_i % t_group
      let m = t_start + t_inside % t_height, n = t_inside / t_height
      if nk > 0 {
        let u = accp_fill % 2
        mbarrier.wait accp_empty[u] parity (accp_fill / 2 + 1) % 2
        tcgen05.fence.after
        accp_fill = accp_fill + 1
        for k in 0 .. nk + 1 {
          let s = ab_wait % 4
          mbarrier.wait ab_full[s] parity ab_wait / 4 % 2
          tcgen05.fence.after
          ab_wait = ab_wait + 1
          if leader {
            tcgen05.mma acc[u] += a[s] @ b[s].T init k == 0
            tcgen05.commit ab_empty[ab_release % 4]
          }
          ab_release = ab_release + 1
        }
        if leader {
          tcgen05.commit accp_full[accp_commit % 2]
        }
        accp_commit = accp_commit + 1
      }
    }
  }
  role epi: 4 warps at 4 {
    var accp_wait = 0
    var accp_release = 0
    frag x: f32[128, 64] layout tmem
    for t_i in cluster.id .. t_total step cluster.count {
      let t_group = t_n * 8
      let t_start = t_i / t_group * 8
      let t_height = clamp(t_m - t_start, 1, 8)
      let t_inside = t_i % t_group
      let m = t_start + t_inside % t_height, n = t_inside / t_height
      let u = accp_wait % 2
      if nk > 0 {
        mbarrier.wait accp_full[u] parity accp_wait / 2 % 2
        tcgen05.fence.after
        accp_wait = accp_wait + 1
      }
      x = 0.0
      if nk > 0 {
        tcgen05.ld x <- acc[u][:, 0 +: 64]
        tcgen05.wait.ld
      }
      if leader {
        tma.store.wait.read 1
      }
      bar.sync 1 threads 128
      store d[0] <- bf16(x) by 16
      fence.proxy.async
      bar.sync 1 threads 128
      if leader {
        tma.store D[m * 128 +: 128, n * 256 +: 64] <- d[0]
        tma.store.commit
      }
      x = 0.0
      if nk > 0 {
        tcgen05.ld x <- acc[u][:, 64 +: 64]
        tcgen05.wait.ld
      }
      if leader {
        tma.store.wait.read 1
      }
      bar.sync 1 threads 128
      store d[1] <- bf16(x) by 16
      fence.proxy.async
      bar.sync 1 threads 128
      if leader {
        tma.store D[m * 128 +: 128, n * 256 + 64 +: 64] <- d[1]
        tma.store.commit
      }
      x = 0.0
      if nk > 0 {
        tcgen05.ld x <- acc[u][:, 128 +: 64]
        tcgen05.wait.ld
      }
      if leader {
        tma.store.wait.read 1
      }
      bar.sync 1 threads 128
      store d[0] <- bf16(x) by 16
      fence.proxy.async
      bar.sync 1 threads 128
      if leader {
        tma.store D[m * 128 +: 128, n * 256 + 128 +: 64] <- d[0]
        tma.store.commit
      }
      x = 0.0
      if nk > 0 {
        tcgen05.ld x <- acc[u][:, 192 +: 64]
        tcgen05.wait.ld
        tcgen05.fence.before
        warp.sync
        if warp.leader {
          mbarrier.arrive accp_empty[accp_release % 2]
        }
        accp_release = accp_release + 1
      }
      if leader {
        tma.store.wait.read 1
      }
      bar.sync 1 threads 128
      store d[1] <- bf16(x) by 16
      fence.proxy.async
      bar.sync 1 threads 128
      if leader {
        tma.store D[m * 128 +: 128, n * 256 + 192 +: 64] <- d[1]
        tma.store.commit
      }
    }
    if leader {
      tma.store.wait.read 0
    }
  }
  warp.sync
  cta.sync
  if warp == 0 {
    warp.sync
    tcgen05.fence.after
    tcgen05.dealloc tmem_base columns 512
  }
}
