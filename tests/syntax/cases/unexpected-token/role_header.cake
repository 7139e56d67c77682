cake 1
kernel k(M: i32)
{
  role a 1 warp {
    x = = 2
  }
  role b: 1 {
    y = 1 +
  }
}
