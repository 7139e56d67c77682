cake 1
kernel a()
{
  x = )
}
kernel b()
{
  y = *
}
