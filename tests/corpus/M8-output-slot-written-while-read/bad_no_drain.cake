cake 1 derived
kernel scale(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  let t_r = R
  let t_total = t_r
  launch t_total persistent
  shared d: f32[2][256] at 0
  role work: 4 warps at 0 {
    var t_n = 0
    frag x: f32[256] vec 2 layout vector
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      x = load(X[r, 0 +: 256], by = 8)
      if leader {
        tma.store.wait.read 1
      }
      bar.sync 1 threads 128
      store d[t_n % 2] <- x * 2.0 by 8
      fence.proxy.async
      bar.sync 1 threads 128
      if leader {
        tma.store Y[r, 0 +: 256] <- d[t_n % 2]
        tma.store.commit
      }
      t_n = t_n + 1
    }
  }
}
