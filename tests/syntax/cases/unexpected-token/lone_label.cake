cake 1
kernel k(M: i32)
{
  @a
  x = 2 @ 
}
