cake 1
kernel k(M: i32)
{
  x =
  tma.load a <-
}
