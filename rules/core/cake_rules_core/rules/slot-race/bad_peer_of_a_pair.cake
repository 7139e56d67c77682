cake 1 derived
kernel of_both(R: i32, A: in bf16[R, 256, 64], B: in bf16[R, 128, 64], D: out f32[R, 256, 128])
  require 1 <= R, R <= 65536
  target sm100
  cluster m = 2 pair m
{
  launch 1
  shared a: bf16[1][128, 64] at 0 swizzle 128, b: bf16[1][64, 64] at 16384 swizzle 128
  shared tmem_at: u32[1] at 24576
  barrier full: mbarrier[1] count 1 at 24584
  barrier empty: mbarrier[1] count 1 at 24592
  barrier done: mbarrier[1] count 1 at 24600
  barrier free: mbarrier[1] count 8 at 24608
  if leader {
    mbarrier.init full
    mbarrier.init empty
    mbarrier.init done
    mbarrier.init free
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
    for r in 0 .. R {
      mbarrier.wait empty[0] parity (r + 1) % 2
      if leader {
        if cluster.m == 0 {
          mbarrier.expect full[0] bytes 49152
        }
        tma.load a[0] <- A[r, 128 * cluster.m +: 128, 0 +: 64] signal full[0] at 0
        tma.load b[0] <- B[r, 64 * cluster.m +: 64, 0 +: 64] signal full[0] at 0
      }
    }
    mbarrier.wait empty[0] parity (R + 1) % 2
  }
  role mma: 1 warp at 1 on pair[0] {
    for r in 0 .. R {
      mbarrier.wait free[0] parity (r + 1) % 2
      mbarrier.wait full[0] parity r % 2
      tcgen05.fence.after
      if leader {
        tcgen05.mma acc[0] = a[0] @ b[0].T
        tcgen05.commit empty[0] mask 3
        tcgen05.commit done[0] mask 3
      }
    }
  }
  role epi: 4 warps at 4 on pair {
    frag x: f32[128, 128] layout tmem
    for r in 0 .. R {
      mbarrier.wait done[0] parity r % 2
      tcgen05.fence.after
      if cluster.m == 1 {
        warp.sync
        if warp.leader {
          mbarrier.arrive free[0] at 0
        }
      }
      tcgen05.ld x <- acc[0]
      tcgen05.wait.ld
      tcgen05.fence.before
      if cluster.m == 0 {
        warp.sync
        if warp.leader {
          mbarrier.arrive free[0] at 0
        }
      }
      store D[r, 128 * cluster.m +: 128, 0 +: 128] <- x by 16
    }
  }
  cluster.sync
  if warp == 0 {
    warp.sync
    tcgen05.fence.after
    tcgen05.dealloc tmem_base columns 128
  }
}
