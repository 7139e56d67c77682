cake 1 derived
kernel add(R: i32, X: in f32[R, 256], B: in f32[R, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm80
{
  launch R
  shared s: f32[2][256] at 0
  role main: 2 warps at 0 {
    frag x: f32[256] vec 4 layout vector
    cp.async s[0] <- X[cluster.id, 0 +: 256] by 16
    cp.async s[1] <- B[cluster.id, 0 +: 256] by 16
    cp.async.commit
    cp.async.wait 0
    bar.sync 1 threads 64
    x = load(s[0], by = 16) + load(s[1], by = 16)
    store Y[cluster.id, 0 +: 256] <- x by 16
  }
}
