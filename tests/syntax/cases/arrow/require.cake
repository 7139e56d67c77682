cake 1
kernel k(M: i32)
  require 0 <-1
{
}
