cake 1
kernel k(M: i32)
{
  x = f(a[1, b)
  y = 2
}
