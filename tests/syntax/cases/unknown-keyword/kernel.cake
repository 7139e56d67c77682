cake 1
kernal k(M: i32)
{
  x =
}
