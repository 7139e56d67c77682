cake 1 derived
kernel k(D: out bf16[64, 64])
  target sm90
{
  launch 1
  shared d: bf16[64, 64] at 0 swizzle 128
  role main: 4 warps at 0 {
    if leader {
      tma.store D[0 +: 64, 0 +: 64] <- d
    }
    if leader { tma.store.wait.read 0 }
  }
}
