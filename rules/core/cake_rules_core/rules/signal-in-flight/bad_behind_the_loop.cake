cake 1 derived
kernel send(R: i32, X: in f32[R, 256], Y: out f32[R, 256], FLAG: inout i32[1])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared d: f32[256] at 0
  role work: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    for r in cluster.id .. R step cluster.count {
      x = load(X[r, 0 +: 256], by = 8)
      store d <- x * 2.0 by 8
      fence.proxy.async
      bar.sync 1 threads 128
      if leader {
        tma.store Y[r, 0 +: 256] <- d
        tma.store.commit
      }
      red.add FLAG[0] <- 1 order release scope sys by 4
      bar.sync 1 threads 128
    }
    if leader {
      tma.store.wait 0
    }
  }
}
