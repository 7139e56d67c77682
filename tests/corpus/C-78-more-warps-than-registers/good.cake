cake 1
kernel plan(R: i32, X: in f32[R, 512], Y: out f32[R, 512])
  const N = 4
  require 1 <= R, R <= 65536
  target sm100
{
  tiles t = persistent(r: ceildiv(R, N))
  role work[N]: 4 warps aligned 4 regs 128 {
    frag x: f32[512] vec 4
    for r in t {
      let row = r * N + work.i
      if row < R {
        x = load(X[row, 0 +: 512])
        store Y[row, 0 +: 512] <- x * 2.0
      }
    }
  }
}
