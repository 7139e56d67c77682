cake 1
kernel k(N: i32)
  target sm90
{
  let n = N * 2
  shared a: f32[64]
}
