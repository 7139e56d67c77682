cake 1 derived
kernel k(N: i32)
  target sm90
{
  launch 1
  shared a: f32[256] at 0, b: f32[128] at 2048 alias a
  shared c: f32[128] at 1024
  role r: 1 warp at 0 {
    store a[0] <- 0.0 by 4
  }
}
