cake 1
kernel k(M: i32)
{
  x = "abc"
  y = 'c' + 1
}
