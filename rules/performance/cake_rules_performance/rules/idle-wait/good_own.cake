cake 1 derived
kernel rows(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  shared s: f32[256] at 0
  role main: 2 warps at 0 {
    frag x: f32[256] vec 4 layout vector
    cp.async s <- X[cluster.id, 0 +: 256] by 16
    cp.async.commit
    cp.async.wait 0
    bar.sync 1 threads 64
    x = load(s, by = 16)
    store Y[cluster.id, 0 +: 256] <- x by 16
  }
}
