cake 1 derived
kernel total(R: i32, N: i32, X: in f32[N, R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536, 0 <= N, N <= 1024
  target sm90
{
  let t_r = R
  let t_total = t_r
  launch t_total persistent
  shared d: f32[2][256] at 0
  role work: 1 warp at 0 {
    var t_n = 0
    frag x: f32[256] vec 2 layout vector
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      x = 0.0
      if leader {
        tma.store.wait.read 1
      }
      warp.sync
      store d[t_n % 2] <- x by 8
      for j in 0 .. N {
        x = x + load(X[j, r, 0 +: 256], by = 8)
        store d[t_n % 2] <- x by 8
        fence.proxy.async
      }
      warp.sync
      if leader {
        tma.store Y[r, 0 +: 256] <- d[t_n % 2]
        tma.store.commit
      }
      t_n = t_n + 1
    }
    if leader {
      tma.store.wait.read 0
    }
  }
}
