cake 1 derived
kernel of_two(N: i32)
  require 1 <= N, N <= 65536
  target sm100
  cluster m = 2 pair m
{
  launch N persistent
  shared tmem_at: u32[1] at 0
  if warp == 0 {
    warp.sync
    tcgen05.alloc tmem_at[0] columns 128
    tcgen05.relinquish
  }
  cluster.sync
  let tmem_base = load(tmem_at[0], by = 4)
  role idle: 1 warp at 1 on pair {
    if cluster.m == 0 { warp.sync }
  }
  cluster.sync
  if warp == 0 {
    warp.sync
    tcgen05.dealloc tmem_base columns 128
  }
}
