cake 1
kernel a()
{
  for k in 0 .. 2 {
    x = 1
}
kernel b()
{
  y = *
}
