cake 1
kernel k(M: i32)
{
  x = a +
    b
  let q = 2,
    p = 3
}
