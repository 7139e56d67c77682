cake 1
kernel k(M: i32)
{
  3
}
