cake 1
kernel once(A: in f32[128], B: out f32[128])
  target sm90
{
  role main: 1 warp {
    frag x: f32[128] vec 4
    x = load(A[0 +: 128])
    store B[0 +: 128] <- x * 2
  }
}
