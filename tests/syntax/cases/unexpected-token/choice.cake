cake 1
kernel k(M: i32)
{
  x = a ? b
  y = a ? b :
  z = if a
}
