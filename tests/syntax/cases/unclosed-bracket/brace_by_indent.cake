cake 1
kernel k(M: i32)
{
  role a: 1 warp {
    for k in 0 .. 2 {
      x = 1
  }
  role b: 1 warp {
    y = 1
  }
}
