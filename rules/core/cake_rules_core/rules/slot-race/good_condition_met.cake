cake 1 derived
kernel chosen(R: i32, X: in i32[R], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  shared last: i32[1] at 0
  role tell: 1 warp at 0 {
    store last[0] <- load(X[cluster.id], by = 4) by 4
    bar.sync 1 threads 64
  }
  role work: 1 warp at 1 {
    frag y: f32[256] vec 4 layout vector
    bar.sync 1 threads 64
    y = 0.0
    if load(last[0], by = 4) == 1 {
      y = 1.0
    }
    store Y[cluster.id, 0 +: 256] <- y by 16
  }
}
