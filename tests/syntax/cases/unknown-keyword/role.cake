cake 1
kernel k(M: i32)
{
  rol load: 1 warp {
    x = 1
  }
}
