cake 1
kernel k(M: i32)
{
  frag in: f32[2]
}
