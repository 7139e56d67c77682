cake 1
kernel k(M: i32)
{
  if a {
    x = 1
  } elif b {
    x = 2
  }
}
