cake 1 derived
kernel twice(R: i32, Y: inout f32[R, 512])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  role main: 4 warps at 0 {
    frag x: f32[512] vec 4 layout vector
    x = load(Y[cluster.id, 0 +: 512], by = 16)
    store Y[cluster.id, 0 +: 512] <- x * 2.0 by 16
  }
}
