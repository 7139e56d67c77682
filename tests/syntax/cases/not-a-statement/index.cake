cake 1
kernel k(M: i32)
{
  a[1]
}
