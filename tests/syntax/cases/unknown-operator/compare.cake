cake 1
kernel k(M: i32)
{
  if a =< b {
  }
  if a <> b {
  }
  if a => b {
  }
}
