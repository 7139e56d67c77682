cake 1 derived
kernel relay(R: i32, N: i32, X: in f32[R, 32], Y: out f32[R, 32])
  require 1 <= R, R <= 65536, 0 <= N, N <= 65536
  target sm90
{
  launch R
  role put: 1 warp at 0 {
    for j in 0 .. N {
      bar.arrive 1 threads 64
      bar.sync 2 threads 64
    }
  }
  role get: 1 warp at 1 {
    frag y: f32[32] vec 1 layout vector
    let r = cluster.id
    for j in 0 .. N {
      bar.sync 1 threads 64
      y = load(X[r, 0 +: 32], by = 4)
      store Y[r, 0 +: 32] <- y by 4
      bar.arrive 2 threads 64
    }
  }
}
