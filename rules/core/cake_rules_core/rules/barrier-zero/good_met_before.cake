cake 1 derived
kernel k(X: in f32[1])
  target sm90
{
  launch 1
  cta.sync
  role main: 4 warps {
    bar.sync 0 threads 128
  }
  role other: 1 warp at 4 {
  }
}
