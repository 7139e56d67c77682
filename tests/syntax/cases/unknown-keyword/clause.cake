cake 1
kernel k(M: i32)
  requires 1 <= M
{
}
