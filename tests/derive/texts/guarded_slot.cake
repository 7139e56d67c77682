cake 1
kernel guarded(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: R)
  shared s: f32[2][256]
  pipeline p: 2 { s } from read to write
  role read: 1 warp {
    frag x: f32[256] vec 4
    for r in t {
      if r % 2 == 0 {
        acquire p as i
        x = load(X[r, 0 +: 256])
        store s[i] <- x
        commit p
      }
    }
  }
  role write: 1 warp {
    frag y: f32[256] vec 4
    for r in t {
      if r % 2 == 0 {
        wait p as i
      }
      y = 0
      if r % 2 == 0 {
        y = load(s[i])
        release p
      }
      store Y[r, 0 +: 256] <- y
    }
  }
}
