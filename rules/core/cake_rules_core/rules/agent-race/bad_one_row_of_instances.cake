cake 1 derived
kernel rows(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 2 <= R, R <= 65536, R % 2 == 0
  target sm90
{
  launch R / 2
  role main[2]: 1 warp at 0 {
    frag x: f32[256] vec 4 layout vector
    let r = cluster.id * 2 + main.i
    x = load(X[r, 0 +: 256], by = 16)
    store Y[cluster.id * 2, 0 +: 256] <- x by 16
  }
}
