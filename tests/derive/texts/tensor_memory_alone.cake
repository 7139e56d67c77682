cake 1
kernel k(X: in f32[128, 48], Y: out f32[128, 48])
  target sm100
{
  tmem x: f32[1][128, 48]
  role main: 4 warps aligned 4 {
    frag f: f32[128, 48]
    f = load(X[0 +: 128, 0 +: 48])
    tcgen05.st x[0] <- f
    tcgen05.wait.st
    tcgen05.ld f <- x[0]
    tcgen05.wait.ld
    store Y[0 +: 128, 0 +: 48] <- f
  }
}
