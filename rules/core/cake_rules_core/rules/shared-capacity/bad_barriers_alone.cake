cake 1 derived
kernel k(N: i32)
  target sm90
{
  launch 1
  barrier b: mbarrier[29000] count 1 at 8000
  if leader { mbarrier.init b }
  cta.sync
  role main: 1 warp at 0 {
    if leader { mbarrier.arrive b[0] }
  }
}
