cake 1
kernel k(M: i32)
{
  tma.load a[s] -> b
}
