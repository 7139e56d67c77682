cake 1 derived
kernel groups(R: i32, N: i32, X: in f32[R, N, 256], Y: out f32[R, 256])
  require 1 <= R, R <= 65536, 0 <= N, N <= 65536
  target sm80
{
  launch R
  shared s: f32[3][256] at 0
  role main: 2 warps at 0 {
    frag x: f32[256] vec 4 layout vector
    x = 0.0
    for j in 0 .. 2 {
      if j < N {
        cp.async s[j] <- X[cluster.id, j, 0 +: 256] by 16
      }
      cp.async.commit
    }
    for j in 0 .. N {
      cp.async.wait 1
      bar.sync 1 threads 64
      x = x + load(s[j % 3], by = 16)
      if j + 2 < N {
        cp.async s[(j + 2) % 3] <- X[cluster.id, j + 2, 0 +: 256] by 16
      }
      cp.async.commit
    }
    cp.async.wait 0
    store Y[cluster.id, 0 +: 256] <- x by 16
  }
}
