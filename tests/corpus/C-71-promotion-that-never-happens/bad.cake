cake 1 derived
kernel promoted(M: i32, K: i32, A: in e4m3[M, K], B: in e4m3[8, K], D: out f32[M, 8])
  require 1 <= M, M <= 65536, 0 <= K, K <= 65536, K % 256 == 0
  target sm90
{
  launch ceildiv(M, 16)
  shared a: e4m3[16, 272] at 0, b: e4m3[8, 272] at 4352
  role main: 1 warp at 0 {
    frag acc: f32[16, 8] layout mma, part: f32[16, 8] layout mma, x: e4m3[16, 256] layout mma_a8, y: e4m3[8, 256] layout mma_b8
    var products = 0
    let m = cluster.id
    acc = 0.0
    part = 0.0
    for k in 0 .. K / 256 {
      cp.async a[:, 0 +: 256] <- A[m * 16 +: 16, k * 256 +: 256] by 16
      cp.async b[:, 0 +: 256] <- B[0 +: 8, k * 256 +: 256] by 16
      cp.async.commit
      cp.async.wait 0
      warp.sync
      ldmatrix x <- a[:, 0 +: 256]
      ldmatrix y <- b[:, 0 +: 256]
      mma.sync part += x @ y.T
      products = products + 8
      if products == 4 {
        acc = acc + part
        part = 0.0
        products = 0
      }
      warp.sync
    }
    store D[m * 16 +: 16, 0 +: 8] <- acc by 8
  }
}
