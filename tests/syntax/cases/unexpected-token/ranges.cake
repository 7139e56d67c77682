cake 1
kernel k(M: i32)
{
  for k in 0 to 3 {
  }
  for k = 0 .. 3 {
  }
  for k in 0, 3 {
  }
}
