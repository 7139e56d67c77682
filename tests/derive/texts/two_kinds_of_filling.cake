cake 1
# One producer fills by its threads, the other by bulk copies: each hands over in its own way.
kernel both(R: i32, X: in f32[R, 256], W: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: R)
  shared x: f32[2][256], w: f32[2][256]
  pipeline p: 2 { x, w } from read, load to write
  role read: 4 warps {
    frag v: f32[256] vec 2
    for r in t {
      acquire p as i
      v = load(X[r, 0 +: 256])
      store x[i] <- v
      commit p
    }
  }
  role load: 1 warp {
    for r in t {
      acquire p as i
      tma.load w[i] <- W[r, 0 +: 256]
      commit p
    }
  }
  role write: 4 warps {
    frag v: f32[256] vec 2
    for r in t {
      wait p as i
      v = load(x[i]) + load(w[i])
      store Y[r, 0 +: 256] <- v
      release p
    }
  }
}
