cake 1
kernel k(N: i32)
  target sm100
  cluster m = 1 pair m
{
  tiles t = grid(m: N)
  role r: 1 warp {
    for m in t {
    }
  }
}
