cake 1 derived
kernel sums(R: i32, S: i32, X: in f32[S, R, 256], W: inout f32[R, 256], DONE: inout i32[R], Y: out f32[R, 256])
  require 1 <= R, R <= 65536, 1 <= S, S <= 64
  target sm90
{
  launch R * S
  shared last: i32[1] at 0
  role main: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    let r = cluster.id / S, s = cluster.id % S
    x = load(X[s, r, 0 +: 256], by = 8)
    red.add W[r, 0 +: 256] <- x by 8
    bar.sync 1 threads 160
    bar.sync 2 threads 160
    if load(last[0], by = 4) == S - 1 {
      x = load(W[r, 0 +: 256], by = 8)
      store Y[r, 0 +: 256] <- x by 8
      store DONE[r] <- 0 by 4
    }
  }
  role count: 1 warp at 4 {
    let r = cluster.id / S
    bar.sync 1 threads 160
    let before = atomic.add(DONE[r], 1, order = acq_rel, scope = gpu)
    store last[0] <- before by 4
    bar.sync 2 threads 160
  }
}
