cake 1 derived
kernel rows(R: i32, C: i32, X: in f32[R, C], Y: out f32[R, C])
  require 1 <= R, R <= 65536, 1 <= C, C <= 1024
  target sm90
{
  launch R
  role main: 8 warps at 0 {
    frag x: f32[1024] vec 4 layout vector
    let r = cluster.id
    x = load(X[r, 0 +: 1024], by = 16)
    store Y[r, 0 +: 1024] <- x by 16
  }
}
