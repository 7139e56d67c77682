cake 1
kernel k(M: i32)
{
  if a = b {
    x = 1
  }
  while a = b {
  }
}
