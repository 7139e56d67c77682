#! lower
cake 1 derived
kernel k(D: out bf16[64, 256])
  target sm80
{
  launch 1
  shared a: bf16[64, 256] at 0
  role main: 4 warps at 0 {
    frag f: bf16[64, 256] vec 2 layout rows
    ldmatrix f <- a
    store D[0 +: 64, 0 +: 256] <- f by 4
  }
}
