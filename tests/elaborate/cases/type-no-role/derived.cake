cake 1 derived
kernel k(N: i32)
  target sm90
{
  launch 1
  cta.sync
}
