cake 1 derived
kernel k(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[256] at 0
  role work: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector
    frag y: f32[256] vec 4 layout vector
    for r in cluster.id .. R step cluster.count {
      x = load(X[r, 0 +: 256], by = 16)
      store s <- x by 16
      y = load(s, by = 16)
      store Y[r, 0 +: 256] <- y by 16
    }
  }
}
