cake 1
kernel many(R: i32, X: in f32[R, 64], Y: out f32[R, 64])
  require 1 <= R, R <= 65536
  const N = 15
  target sm90
{
  tiles t = persistent(r: ceildiv(R, N))
  shared s: f32[N][2]
  role main[N]: 2 warps {
    frag x: f32[64] vec 1
    for r in t {
      let row = r * N + main.i
      x = load(X[min(row, R - 1), 0 +: 64], fill = 0)
      sync main
      store s[main.i][warp] <- warpsum(x)
      sync main
      let total = sum(load(s[main.i]))
      if row < R {
        store Y[row, 0 +: 64] <- x * total
      }
    }
  }
}
