cake 1
kernel two_phases(R: i32, C: i32, X: in f32[R, 256], W: in f32[C, 256], Y: out f32[R, 256], Z: out f32[C, 256])
  require 0 <= R, R <= 65536, 0 <= C, C <= 65536
  target sm90
{
  tiles rows = persistent(r: R) ctas 2
  tiles cols = persistent(c: C)
  shared a: f32[3][256]
  pipeline p: 3 { a } from load to main
  role load: 1 warp {
    for r in rows {
      acquire p as s
      tma.load a[s] <- X[r, 0 +: 256]
      commit p
    }
    for c in cols {
      acquire p as s
      tma.load a[s] <- W[c, 0 +: 256]
      commit p
    }
  }
  role main: 4 warps {
    frag x: f32[256] vec 2
    for r in rows {
      wait p as s
      x = load(a[s])
      release p
      store Y[r, 0 +: 256] <- x * f32(rows.n)
    }
    for c in cols {
      wait p as s
      x = load(a[s])
      release p
      if cols.next.c < C {
        x = x + load(W[cols.next.c, 0 +: 256])
      }
      store Z[c, 0 +: 256] <- x * f32(cols.n)
    }
  }
}
