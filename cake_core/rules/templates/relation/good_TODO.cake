cake 1 derived
kernel k()
  target sm90
{
  launch 1
  barrier full: mbarrier[1] count 1 at 0
  if leader { mbarrier.init full }
  cta.sync
  role a: 1 warp at 0 {
    if leader {
      mbarrier.arrive full[0]
    }
    mbarrier.wait full[0] parity 0
  }
}
