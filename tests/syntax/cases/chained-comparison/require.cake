cake 1
kernel k(M: i32)
  require 1 <= M <= 5, 1 < M
{
}
