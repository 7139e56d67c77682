cake 1
kernel k(X: in f32[128, 2], Y: out f32[128, 2], Z: in f32[128, 48], U: out f32[128, 48])
  target sm100
{
  tmem x: f32[1][128, 2], y: f32[1][128, 48]
  role main: 4 warps aligned 4 {
    frag f: f32[128, 2], g: f32[128, 48]
    f = load(X[0 +: 128, 0 +: 2])
    g = load(Z[0 +: 128, 0 +: 48])
    tcgen05.st x[0] <- f
    tcgen05.st y[0] <- g
    tcgen05.wait.st
    tcgen05.ld f <- x[0]
    tcgen05.ld g <- y[0]
    tcgen05.wait.ld
    store Y[0 +: 128, 0 +: 2] <- f
    store U[0 +: 128, 0 +: 48] <- g
  }
}
