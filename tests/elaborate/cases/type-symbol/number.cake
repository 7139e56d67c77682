cake 1 derived
kernel k(A: out f32[128])
  target sm90
{
  launch 1
  role main: 4 warps at 0 {
    frag s: f32[128, 64] layout mma, l: f32[128] over row part sum layout mma
    s = 1
    l = fold(1, s)
    store A[0 +: 128] <- rowsum(l) by 4
  }
}
