cake 1
kernel relay(M: i32, N: i32, X: in f32[M, N, 256], Y: out f32[M, N, 256], NEXT: workspace i32[1])
  require 0 <= M, M <= 1024, 0 <= N, N <= 1024
  target sm90
{
  tiles t = persistent(m: M, n: N, raster = 8) ctas 2 dynamic NEXT ahead 2 {
    let first = m == 0
  }
  shared s: f32[2][256]
  pipeline p: 2 { s } from read to write
  role read: 1 warp regs 40 {
    frag x: f32[256] vec 4
    for (m, n) in t {
      if first {
        acquire p as i
        x = load(X[m, n, 0 +: 256])
        store s[i] <- x
        commit p
      }
    }
  }
  role write: 4 warps regs 120 {
    frag y: f32[256] vec 2
    for (a, b) in t {
      if first {
        wait p as i
        y = load(s[i])
        store Y[a, b, 0 +: 256] <- y
        release p
      }
    }
  }
}
