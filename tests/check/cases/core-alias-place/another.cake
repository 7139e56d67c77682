cake 1 derived
kernel k(N: i32)
  target sm90
{
  launch 1
  shared a: f32[256] at 0, b: f32[128] at 512 alias a
  shared c: f32[128] at 1024, d: f32[64] at 0 alias c
  role r: 1 warp at 0 {
    store a[0] <- 0.0 by 4
  }
}
