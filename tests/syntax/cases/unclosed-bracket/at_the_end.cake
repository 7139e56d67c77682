cake 1
kernel a()
{
  x = f(1
