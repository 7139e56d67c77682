cake 1
kernel k(M: i32)
{
  for k in 0 .. 2 {
  } else {
    y = 2
  }
}
