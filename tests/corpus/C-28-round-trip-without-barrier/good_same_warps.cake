cake 1 derived
kernel regroup(R: i32, X: in bf16[R, 64], Y: out bf16[R, 64])
  require 1 <= R, R <= 65536
  target sm90
{
  launch ceildiv(R, 64)
  shared s: bf16[64, 64] at 0 swizzle 128
  role main: 4 warps at 0 {
    frag x: bf16[64, 64] layout mma grid (4, 1), y: bf16[64, 64] layout mma grid (4, 1)
    let r = cluster.id
    x = load(X[r * 64 +: 64, 0 +: 64], by = 4)
    store s <- x by stmatrix
    warp.sync
    ldmatrix y <- s
    store Y[r * 64 +: 64, 0 +: 64] <- y by 4
  }
}
