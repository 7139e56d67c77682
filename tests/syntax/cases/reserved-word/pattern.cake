cake 1
kernel k(M: i32)
{
  for (m, group) in t {
    x = 1
  }
}
