cake 1
kernel k(M: i32)
{
  if a ≤ 3 {
  }
  y = a × b
  z = 1 + 2
}
