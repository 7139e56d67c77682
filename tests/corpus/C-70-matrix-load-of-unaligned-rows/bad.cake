cake 1 derived
kernel rows(R: i32, X: in bf16[R, 64], Y: out bf16[R, 64])
  require 1 <= R, R <= 65536
  target sm80
{
  launch ceildiv(R, 16)
  shared s: bf16[16, 72] at 0
  role main: 1 warp at 0 {
    frag y: bf16[16, 64] layout mma
    let r = cluster.id
    cp.async s[:, 0 +: 64] <- X[r * 16 +: 16, 0 +: 64] by 16
    cp.async.commit
    cp.async.wait 0
    warp.sync
    ldmatrix y <- s[:, 4 +: 64]
    store Y[r * 16 +: 16, 0 +: 64] <- y by 4
  }
}
