cake 1 derived
kernel shift(R: i32, N: i32, X: in f32[R, N, 256], Y: out f32[R, N, 256])
  require 1 <= R, R <= 65536, 0 <= N, N <= 65536
  target sm80
{
  launch R
  shared s: f32[2][256] at 0
  role main: 2 warps at 0 {
    frag x: f32[256] vec 4 layout vector, y: f32[256] vec 4 layout vector
    let r = cluster.id
    y = 0.0
    store s[0] <- y by 16
    bar.sync 1 threads 64
    for j in 0 .. N {
      cp.async s[(j + 1) % 2] <- X[r, j, 0 +: 256] by 16
      cp.async.commit
      x = load(s[j % 2], by = 16)
      store Y[r, j, 0 +: 256] <- x by 16
      cp.async.wait 0
      bar.sync 1 threads 64
    }
  }
}
