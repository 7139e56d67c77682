cake 1
kernel gone(D: out f32[128, 64])
  target sm100
{
  tmem s: f32[128, 64], p: f32[128, 128] alias s
  role r: 4 warps aligned 4 {
    frag x: f32[128, 64]
    x = 1
    tcgen05.st s <- x
    tcgen05.wait.st
    tcgen05.st p <- x * 2.0
    tcgen05.wait.st
    tcgen05.ld x <- s
    tcgen05.wait.ld
    store D[0 +: 128, 0 +: 64] <- x
  }
}
