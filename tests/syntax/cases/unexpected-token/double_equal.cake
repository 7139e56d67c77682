cake 1
kernel k(M: i32)
{
  let x == 1
}
