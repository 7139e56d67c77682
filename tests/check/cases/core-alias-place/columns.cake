cake 1 derived
kernel chained(R: i32, A: in bf16[128, 64], B: in bf16[128, 64], D: out f32[128, 128])
  require 1 <= R, R <= 65536
  target sm100
{
  let t_r = R
  let t_total = t_r
  launch t_total persistent
  shared a: bf16[1][128, 64] at 0 swizzle 128, b: bf16[1][128, 64] at 16384 swizzle 128
  shared tmem_at: u32[1] at 32768
  barrier ab_full: mbarrier[1] count 1 at 32776
  barrier ab_empty: mbarrier[1] count 1 at 32784
  barrier done_full: mbarrier[1] count 1 at 32792
  barrier done_empty: mbarrier[1] count 4 at 32800
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
  tmem s: f32[1][128, 128] at 0 base tmem_base, p: f32[128, 128] at 64 base tmem_base alias s
  role load: 1 warp at 0 {
    var ab_fill = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      let i = 0
      mbarrier.wait ab_empty[i] parity (ab_fill + 1) % 2
      ab_fill = ab_fill + 1
      if leader {
        mbarrier.expect ab_full[i] bytes 32768
        tma.load a[i] <- A[0 +: 128, 0 +: 64] signal ab_full[i]
        tma.load b[i] <- B[0 +: 128, 0 +: 64] signal ab_full[i]
      }
    }
    for ab_last in 0 .. 1 {
      mbarrier.wait ab_empty[0] parity (ab_fill + 1) % 2
      ab_fill = ab_fill + 1
    }
  }
  role mma: 1 warp at 1 {
    var ab_wait = 0
    var ab_release = 0
    var done_fill = 0
    var done_commit = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      let u = 0
      mbarrier.wait done_empty[u] parity (done_fill + 1) % 2
      tcgen05.fence.after
      done_fill = done_fill + 1
      let i = 0
      mbarrier.wait ab_full[i] parity ab_wait % 2
      tcgen05.fence.after
      ab_wait = ab_wait + 1
      if leader {
        tcgen05.mma s[u] = a[i] @ b[i].T
        tcgen05.commit ab_empty[0]
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
      let r = t_i
      let u = 0
      mbarrier.wait done_full[u] parity done_wait % 2
      tcgen05.fence.after
      done_wait = done_wait + 1
      tcgen05.ld x <- s[u]
      tcgen05.wait.ld
      tcgen05.st p <- x
      tcgen05.wait.st
      tcgen05.ld x <- p
      tcgen05.wait.ld
      tcgen05.fence.before
      warp.sync
      if warp.leader {
        mbarrier.arrive done_empty[0]
      }
      done_release = done_release + 1
      store D[0 +: 128, 0 +: 128] <- x by 16
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
