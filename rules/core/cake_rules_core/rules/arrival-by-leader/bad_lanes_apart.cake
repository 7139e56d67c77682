cake 1 derived
kernel copy(R: i32, X: in f32[R, 512], Y: out f32[R, 512])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R persistent
  shared s: f32[2][512] at 0
  barrier full: mbarrier[2] count 4 at 4096, empty: mbarrier[2] count 1 at 4112
  if leader {
    mbarrier.init full
    mbarrier.init empty
  }
  cta.sync
  role read: 4 warps at 0 {
    frag x: f32[512] vec 4 layout vector
    var n = 0
    for r in cluster.id .. R step cluster.count {
      mbarrier.wait empty[n % 2] parity (n / 2 + 1) % 2
      x = load(X[r, 0 +: 512], by = 16)
      store s[n % 2] <- x by 16
      if warp.leader { mbarrier.arrive full[n % 2] }
      n = n + 1
    }
  }
  role write: 4 warps at 4 {
    frag y: f32[512] vec 4 layout vector
    var n = 0
    for r in cluster.id .. R step cluster.count {
      mbarrier.wait full[n % 2] parity n / 2 % 2
      y = load(s[n % 2], by = 16)
      bar.sync 2 threads 128
      if leader { mbarrier.arrive empty[n % 2] }
      store Y[r, 0 +: 512] <- y by 16
      n = n + 1
    }
  }
}
