cake 1
kernel k(M: i32)
{
  pipline p: 2 { a } from x to y
}
