cake 1 derived
kernel k(N: i32)
  target sm90
{
  launch 1
  role a: 4 warps at 4 {
    cta.sync
  }
}
