cake 1
kernel k(M: i32)
{
  x = a[0:4]
  y = a[0..4]
}
