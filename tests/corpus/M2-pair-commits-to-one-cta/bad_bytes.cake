cake 1 derived
kernel of_both(A: in bf16[256, 64], B: in bf16[128, 64], D: out f32[256, 128])
  target sm100
  cluster m = 2 pair m
{
  launch 1
  shared a: bf16[1][128, 64] at 0 swizzle 128, b: bf16[1][64, 64] at 16384 swizzle 128
  shared tmem_at: u32[1] at 24576
  barrier ab_full: mbarrier[1] count 2 at 24584
  barrier ab_empty: mbarrier[1] count 1 at 24592
  barrier done_full: mbarrier[1] count 1 at 24600
  barrier done_empty: mbarrier[1] count 8 at 24608
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
  cluster.sync
  let tmem_base = load(tmem_at[0], by = 4)
  tmem acc: f32[1][128, 128] at 0 base tmem_base
  role load: 1 warp at 0 on pair {
    var ab_fill = 0
    let s = 0
    mbarrier.wait ab_empty[s] parity (ab_fill + 1) % 2
    ab_fill = ab_fill + 1
    if leader {
      mbarrier.expect ab_full[s] bytes 24576 at 0
      tma.load a[s] <- A[128 * cluster.m +: 128, 0 +: 64] signal ab_full[s]
      tma.load b[s] <- B[64 * cluster.m +: 64, 0 +: 64] signal ab_full[s] at 0
    }
    for ab_last in 0 .. 1 {
      mbarrier.wait ab_empty[0] parity (ab_fill + 1) % 2
      ab_fill = ab_fill + 1
    }
  }
  role mma: 1 warp at 1 on pair[0] {
    var ab_wait = 0
    var ab_release = 0
    var done_fill = 0
    var done_commit = 0
    let u = 0
    mbarrier.wait done_empty[u] parity (done_fill + 1) % 2
    tcgen05.fence.after
    done_fill = done_fill + 1
    let s = 0
    mbarrier.wait ab_full[s] parity ab_wait % 2
    tcgen05.fence.after
    ab_wait = ab_wait + 1
    if leader {
      tcgen05.mma acc[u] = a[s] @ b[s].T
      tcgen05.commit ab_empty[0] mask 3
    }
    ab_release = ab_release + 1
    if leader {
      tcgen05.commit done_full[0] mask 3
    }
    done_commit = done_commit + 1
  }
  role epi: 4 warps at 4 on pair {
    var done_wait = 0
    var done_release = 0
    frag x: f32[128, 128] layout tmem
    let u = 0
    mbarrier.wait done_full[u] parity done_wait % 2
    tcgen05.fence.after
    done_wait = done_wait + 1
    tcgen05.ld x <- acc[u]
    tcgen05.wait.ld
    tcgen05.fence.before
    warp.sync
    if warp.leader {
      mbarrier.arrive done_empty[0] at 0
    }
    done_release = done_release + 1
    store D[128 * cluster.m +: 128, 0 +: 128] <- x by 16
  }
  cluster.sync
  if warp == 0 {
    warp.sync
    tcgen05.fence.after
    tcgen05.dealloc tmem_base columns 128
  }
}
