cake 1
kernel k(M: i32)
{
  (a, 3) = f(x)
}
