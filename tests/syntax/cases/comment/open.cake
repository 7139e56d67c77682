cake 1
kernel k(M: i32)
{
  y = 2 /* never closed
}
