cake 1
kernel k(M: i32)
{
  if f(a, b) < b[i] < c {
    x = 1
  }
}
