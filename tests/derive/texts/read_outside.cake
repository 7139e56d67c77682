cake 1
kernel scaled(R: i32, N: in i32[2], S: in f32[1], X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  assume 0 <= N[0], N[0] <= N[1], N[1] <= R
  target sm90
{
  let most = ceildiv(R, 4), first = load(N[0]), s = load(S[0])
  let rows = N[1] - first
  tiles t = persistent(b: most) {
    let left = min(rows - 4 * b, 4)
  }
  shared a: f32[2][256]
  pipeline p: 2 { a } from read to main
  role read: 1 warp {
    grid.wait
    for b in t {
      for i in 0 .. left {
        acquire p as k
        tma.load a[k] <- X[first + 4 * b + i, 0 +: 256]
        commit p
      }
    }
  }
  role main: 4 warps {
    frag x: f32[256] vec 2
    grid.wait
    for b in t {
      for i in 0 .. left {
        wait p as k
        x = load(a[k])
        release p
        store Y[first + 4 * b + i, 0 +: 256] <- x * s
      }
    }
  }
}
