cake 1
kernel k()
{
  x = ÿ
}
