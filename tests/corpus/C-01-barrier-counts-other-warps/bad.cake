cake 1 derived
kernel through(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm100
{
  launch R
  shared s: f32[256] at 0
  role load: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    let r = cluster.id
    x = load(X[r, 0 +: 256], by = 8)
    store s <- x by 8
    bar.arrive 1 threads 64
  }
  role epi: 1 warp at 4 {
    frag y: f32[256] vec 4 layout vector
    let r = cluster.id
    bar.sync 1 threads 64
    y = load(s, by = 16)
    store Y[r, 0 +: 256] <- y by 16
  }
}
