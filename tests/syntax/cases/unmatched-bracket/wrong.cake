cake 1
kernel k(M: i32)
{
  x = f(a]
  y = g[b)
}
