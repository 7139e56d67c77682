#! lower
cake 1 derived
kernel k(A: out f32[32])
  target sm90
{
  launch 1
  role main: 4 warps at 0 {
    frag s: f32[32, 64] grid (2, 2) layout mma
    s = 0.0
    store A[0 +: 32] <- rowmax(s) by 4
  }
}
