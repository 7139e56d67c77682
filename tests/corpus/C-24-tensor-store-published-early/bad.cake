cake 1 derived
kernel through(R: i32, X: in f32[R, 32], Y: out f32[R, 32])
  require 1 <= R, R <= 65536
  target sm100
{
  launch ceildiv(R, 128)
  shared tmem_at: u32[1] at 0
  barrier full: mbarrier[1] count 4 at 8
  if leader {
    mbarrier.init full
    fence.mbarrier_init
  }
  if warp == 0 {
    warp.sync
    tcgen05.alloc tmem_at[0] columns 32
    tcgen05.relinquish
  }
  cta.sync
  let tmem_base = load(tmem_at[0], by = 4)
  tmem acc: f32[1][128, 32] at 0 base tmem_base
  role put: 4 warps at 0 {
    frag x: f32[128, 32] layout tmem
    let r = cluster.id
    x = load(X[r * 128 +: 128, 0 +: 32], by = 16)
    tcgen05.st acc[0] <- x
    tcgen05.fence.before
    tcgen05.wait.st
    warp.sync
    if warp.leader {
      mbarrier.arrive full[0]
    }
  }
  role get: 4 warps at 4 {
    frag y: f32[128, 32] layout tmem
    let r = cluster.id
    mbarrier.wait full[0] parity 0
    tcgen05.fence.after
    tcgen05.ld y <- acc[0]
    tcgen05.wait.ld
    tcgen05.fence.before
    store Y[r * 128 +: 128, 0 +: 32] <- y by 16
  }
  warp.sync
  cta.sync
  if warp == 0 {
    warp.sync
    tcgen05.fence.after
    tcgen05.dealloc tmem_base columns 32
  }
}
