cake 1
kernel k(M: i32)
{
  if a <-1 {
    x = 2
  }
}
