cake 1 derived
kernel k(D: out f32[128, 32])
  target sm100
{
  launch 1
  shared word: u32[1] at 0
  if warp == 0 {
    tcgen05.alloc word[0] columns 64
    tcgen05.relinquish
  }
  cta.sync
  let address = load(word[0], by = 4)
  tmem acc: f32[1][128, 32] at 0 base address
  tmem more: f32[1][128, 32] at 32 base address
  role r: 4 warps at 0 {
    frag x: f32[128, 32] layout tmem
    x = 1.0
    tcgen05.st acc[0] <- x
    tcgen05.wait.st
    tcgen05.ld x <- acc[0]
    tcgen05.wait.ld
    store D[0 +: 128, 0 +: 32] <- x by 16
  }
  cta.sync
  tcgen05.dealloc address columns 64
}
