cake 1 derived
kernel lone(N: i32)
  require 1 <= N, N <= 65536
  target sm90
{
  launch N
  role r: 2 warps at 0 {
    if warp.leader {
      warp.sync
    }
  }
}
