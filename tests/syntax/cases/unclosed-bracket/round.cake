cake 1
kernel k(M: i32)
{
  x = f(a, b
  y = 1
  let z = 2
}
