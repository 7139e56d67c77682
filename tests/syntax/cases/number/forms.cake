cake 1
kernel k(M: i32)
{
  x = 0x10
  y = 1_000
  z = 5.
  w = .5
  v = 3.0f
  u = 12abc
}
