cake 1 derived
kernel tile(R: i32, X: in bf16[R, 64], Y: out bf16[R, 64])
  require 1 <= R, R <= 65536
  target sm90
{
  launch ceildiv(R, 64)
  shared s: bf16[64, 64] at 0 swizzle 128
  role main: 1 warpgroup at 0 {
    frag x: bf16[64, 64] layout mma
    x = load(X[cluster.id * 64 +: 64, 0 +: 64], by = 4)
    if warp.leader {
      store s <- x by stmatrix
    }
    bar.sync 1 threads 128
    x = load(s, by = 4)
    store Y[cluster.id * 64 +: 64, 0 +: 64] <- x by 4
  }
}
