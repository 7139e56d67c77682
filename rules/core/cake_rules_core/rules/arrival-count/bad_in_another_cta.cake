cake 1 derived
kernel pass(N: i32, Y: out f32[N, 4])
  require 1 <= N, N <= 65536
  target sm90
  cluster m = 2
{
  launch 1
  barrier b: mbarrier[1] count 1 at 16
  if leader { mbarrier.init b; fence.mbarrier_init }
  cluster.sync
  role r: 1 warp at 0 {
    if cluster.m == 0 {
      if leader { mbarrier.arrive b[0] at 1 }
      mbarrier.wait b[0] parity 0
    }
  }
  cluster.sync
}
