cake 1 derived
kernel turned(R: i32, Y: inout f32[R, 512])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  role main: 4 warps at 0 {
    frag x: f32[512] vec 4 layout vector, y: f32[512] vec 1 layout vector
    x = load(Y[cluster.id, 0 +: 512], by = 16)
    store Y[cluster.id, 0 +: 512] <- x * 2.0 by 16
    bar.sync 1 threads 128
    y = load(Y[cluster.id, 0 +: 512], by = 4)
    bar.sync 1 threads 128
    store Y[cluster.id, 0 +: 512] <- y + 1.0 by 4
  }
}
