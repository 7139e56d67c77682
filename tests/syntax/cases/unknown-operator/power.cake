cake 1
kernel k(M: i32)
{
  x = a ** 2
  y = 1 << 3
  z = y >> 2
}
