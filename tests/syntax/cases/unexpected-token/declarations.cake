cake 1
kernel k(M: i32)
{
  shared a f32[2]
  shared a: f32[2] at 0,
  pipeline p: 2 { a } from x
  pipeline q 2 { a } from x to y
}
