cake 1
kernel k(M i32)
  const X = 1, Y
  require
{
  x = *
}
