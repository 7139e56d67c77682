cake 1 derived
kernel of_one(N: i32, A: in bf16[N, 64], B: in bf16[128, 64], D: out f32[N, 128])
  require 1 <= N, N <= 65536
  target sm100
{
  let t_m = ceildiv(N, 128)
  let t_total = t_m
  launch t_total persistent
  shared a: bf16[2][128, 64] at 0 swizzle 128, b: bf16[2][128, 64] at 32768 swizzle 128
  shared tmem_at: u32[1] at 65536
  barrier ab_full: mbarrier[2] count 1 at 65544
  barrier ab_empty: mbarrier[2] count 1 at 65560
  barrier done_full: mbarrier[1] count 1 at 65576
  barrier done_empty: mbarrier[1] count 4 at 65584
  if leader {
    mbarrier.init ab_full
    mbarrier.init ab_empty
    mbarrier.init done_full
    mbarrier.init done_empty
    fence.mbarrier_init
  }
  if warp == 0 {
    warp.sync
    tcgen05.alloc tmem_at[0] columns 256
    tcgen05.relinquish
  }
  cta.sync
  let tmem_base = load(tmem_at[0], by = 4)
  tmem acc: f32[1][128, 128] at 4 base tmem_base
  role load: 1 warp at 0 {
    var ab_fill = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let m = t_i
      let s = ab_fill % 2
      mbarrier.wait ab_empty[s] parity (ab_fill / 2 + 1) % 2
      ab_fill = ab_fill + 1
      if leader {
        mbarrier.expect ab_full[s] bytes 32768
        tma.load a[s] <- A[128 * m +: 128, 0 +: 64] signal ab_full[s]
        tma.load b[s] <- B[0 +: 128, 0 +: 64] signal ab_full[s]
      }
    }
    for ab_last in 0 .. 2 {
      mbarrier.wait ab_empty[ab_fill % 2] parity (ab_fill / 2 + 1) % 2
      ab_fill = ab_fill + 1
    }
  }
  role mma: 1 warp at 1 {
    var ab_wait = 0
    var ab_release = 0
    var done_fill = 0
    var done_commit = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let m = t_i
      let u = 0
      mbarrier.wait done_empty[u] parity (done_fill + 1) % 2
      tcgen05.fence.after
      done_fill = done_fill + 1
      let s = ab_wait % 2
      mbarrier.wait ab_full[s] parity ab_wait / 2 % 2
      tcgen05.fence.after
      ab_wait = ab_wait + 1
      if leader {
        tcgen05.mma acc[u] = a[s] @ b[s].T
        tcgen05.commit ab_empty[ab_release % 2]
      }
      ab_release = ab_release + 1
      if leader {
        tcgen05.commit done_full[0]
      }
      done_commit = done_commit + 1
    }
  }
  role epi: 4 warps at 4 {
    var done_wait = 0
    var done_release = 0
    frag x: f32[128, 128] layout tmem
    for t_i in cluster.id .. t_total step cluster.count {
      let m = t_i
      let u = 0
      mbarrier.wait done_full[u] parity done_wait % 2
      tcgen05.fence.after
      done_wait = done_wait + 1
      tcgen05.ld x <- acc[u]
      tcgen05.wait.ld
      tcgen05.fence.before
      warp.sync
      if warp.leader {
        mbarrier.arrive done_empty[0]
      }
      done_release = done_release + 1
      store D[128 * m +: 128, 0 +: 128] <- x by 16
    }
  }
  warp.sync
  cta.sync
  if warp == 0 {
    warp.sync
    tcgen05.fence.after
    tcgen05.dealloc tmem_base columns 256
  }
}
