cake 1 derived
kernel k(N: i32)
  target sm90
{
  role main: 1 warp at 0 {
    warp.sync
  }
}
