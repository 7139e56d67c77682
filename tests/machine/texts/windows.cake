cake 1 derived
kernel windows(X: in f32[128, 32], Y: out f32[128, 32])
  target sm100
{
  launch 1
  shared tmem_at: u32[1] at 0
  if warp == 0 {
    warp.sync
    tcgen05.alloc tmem_at[0] columns 32
    tcgen05.relinquish
  }
  cta.sync
  let tmem_base = load(tmem_at[0], by = 4)
  tmem x: f32[128, 32] at 0 base tmem_base
  role main: 4 warps at 0 {
    frag a: f32[128, 32] layout tmem
    a = load(X[0 +: 128, 0 +: 32], by = 16)
    tcgen05.st x <- a
    tcgen05.wait.st
    tcgen05.ld a <- x
    tcgen05.wait.ld
    store Y[0 +: 128, 0 +: 32] <- a by 16
  }
  warp.sync
  cta.sync
  if warp == 0 {
    warp.sync
    tcgen05.fence.after
    tcgen05.dealloc tmem_base columns 32
  }
}
