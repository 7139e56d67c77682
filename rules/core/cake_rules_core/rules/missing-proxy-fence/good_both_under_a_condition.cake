cake 1 derived
kernel copy(R: i32, X: in bf16[R, 64], Y: out bf16[R, 64])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: bf16[64, 64] at 0 swizzle 128
  role main: 1 warpgroup at 0 {
    frag x: f32[64, 64] layout mma
    x = 0.0
    store s <- bf16(x) by stmatrix
    fence.proxy.async
    for r in cluster.id .. R step cluster.count {
      x = f32(load(X[r * 64 +: 64, 0 +: 64], fill = 0, by = 4))
      if leader { tma.store.wait.read 0 }
      bar.sync 1 threads 128
      if r > 0 {
        store s <- bf16(x) by stmatrix
      }
      if r > 0 {
        fence.proxy.async
      }
      bar.sync 1 threads 128
      if leader {
        tma.store Y[r * 64 +: 64, 0 +: 64] <- s
        tma.store.commit
      }
    }
    if leader { tma.store.wait.read 0 }
  }
}
