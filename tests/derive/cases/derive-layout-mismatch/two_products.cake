cake 1
kernel k(A: in bf16[64, 64], B: out f32[64])
  target sm90
{
  shared t: bf16[64, 64], u: bf16[64, 64]
  role main: 1 warpgroup {
    frag y: bf16[64, 64], w: bf16[64, 64], z: f32[64, 64]
    wgmma z += y @ t.T
    wgmma.wait 0
    mma.sync z += y @ w.T
  }
}
