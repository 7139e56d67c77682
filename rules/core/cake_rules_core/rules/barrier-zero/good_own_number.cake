cake 1 derived
kernel k(X: in f32[1])
  target sm90
{
  launch 1
  role main: 4 warps {
    bar.sync 1 threads 128
  }
  role other: 1 warp at 4 {
  }
  cta.sync
}
