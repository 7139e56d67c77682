cake 1
kernel k(D: out f32[128, 64])
  target sm100
{
  tmem acc: f32[1][128, 64], other: f32[1][128, 64] alias acc
  role r: 4 warps aligned 4 {
    frag x: f32[128, 64]
    tcgen05.ld x <- acc[0]
    tcgen05.wait.ld
    store D[0 +: 128, 0 +: 64] <- x
  }
}
