cake 1
kernel k(M: i32)
{
  x = 1 // one
  // two
  y = 2
}
