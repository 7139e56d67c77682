cake 1 derived
kernel turns(R: i32, X: in f32[R, 32], Y: out f32[R, 32])
  require 0 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[32] at 0
  role work[2]: 1 warp at 0 {
    frag x: f32[32] vec 1 layout vector
    if work.i == 1 {
      bar.arrive 1 threads 64
    }
    for t_i in cluster.id .. R step cluster.count {
      x = load(X[t_i, 0 +: 32], by = 4)
      bar.sync 1 + work.i threads 64
      store s <- x by 4
      warp.sync
      x = load(s, by = 4)
      bar.arrive 1 + (work.i + 1) % 2 threads 64
      store Y[t_i, 0 +: 32] <- x by 4
    }
    if work.i == 0 {
      bar.sync 1 threads 64
    }
  }
}
