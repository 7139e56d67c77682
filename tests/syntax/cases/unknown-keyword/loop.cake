cake 1
kernel k(M: i32)
{
  fro k in 0 .. 3 {
    x = +
  }
}
