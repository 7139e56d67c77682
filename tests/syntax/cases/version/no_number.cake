cake
kernel k()
{
  x = 
}
