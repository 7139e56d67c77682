cake 1
kernel k(M: i32)
{
  if a {
    x = 1
  }
  else {
    y = 2
  }
}
