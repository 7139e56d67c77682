cake 1
kernel k(N: i32)
  target sm90
{
}
