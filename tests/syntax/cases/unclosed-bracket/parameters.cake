cake 1
kernel a(M: i32,
  require 1 <= M
{
  x = 1
}
