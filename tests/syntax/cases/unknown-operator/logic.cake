cake 1
kernel k(M: i32)
{
  if a && b || !c {
  }
}
