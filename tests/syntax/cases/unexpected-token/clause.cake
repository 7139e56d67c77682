cake 1
kernel k()
  clutter m = 2
  mesh m = 2
{
}
