cake 1 derived
kernel copy(R: i32, X: in bf16[R, 64], Y: out bf16[R, 64])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: bf16[64, 64] at 0 swizzle 128
  role main: 1 warpgroup at 0 {
    frag x: f32[64, 64] layout mma
    var n = 0
    for r in cluster.id .. R step cluster.count {
      fence.proxy.async
      bar.sync 1 threads 128
      if n > 0 {
        if leader {
          tma.store Y[(r - cluster.count) * 64 +: 64, 0 +: 64] <- s
          tma.store.commit
          tma.store.wait.read 0
        }
      }
      bar.sync 1 threads 128
      x = f32(load(X[r * 64 +: 64, 0 +: 64], fill = 0, by = 4))
      store s <- bf16(x) by stmatrix
      n = n + 1
    }
  }
}
