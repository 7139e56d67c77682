cake 1 derived
kernel k(N: i32, A: in f32[N])
  target sm90
{
  launch 1
  role r: 1 warp at 0 {
    group { warp.sync }
  }
}
