cake 1
kernel k(M: i32)
{
  else {
    y = 2
  }
}
