cake 1
kernel blocks(R: i32, X: in f32[R, 256], Y: out f32[R, 256])
  require 0 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: ceildiv(R, 64))
  shared s: f32[2][64, 256]
  pipeline p: 2 { s } from load to work
  role load: 1 warp {
    for r in t {
      acquire p as i
      bulk.load s[i] <- X[r * 64 +: 64, 0 +: 256] exact
      commit p
    }
  }
  role work: 1 warp {
    frag x: f32[256] vec 4
    for r in t {
      wait p as i
      for j in 0 .. min(64, R - r * 64) {
        x = load(s[i][j, :])
        store Y[r * 64 + j, 0 +: 256] <- x
      }
      release p
    }
  }
}
