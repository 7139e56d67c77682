cake 1
kernel k(M: i32)
{
  naïve = 3
  x = größe
}
