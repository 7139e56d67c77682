cake 1
kernel copy(N: i32, A: in f32[N], B: out f32[N])
  require 1 <= N, N <= 1048576
  target sm90
{
  tiles t = persistent(i: ceildiv(N, 256))
  shared a: f32[2][256]
  pipeline p: 2 { a } from fill to drink
  role fill: 2 warps {
    frag x: f32[256] vec 4
    for i in t {
      x = load(A[i * 256 +: 256], fill = 0)
      store a[0] <- x
      acquire p as s
      commit p
    }
  }
  role drink[2]: 1 warp {
    frag y: f32[256] vec 4
    for i in t {
      wait p as s
      y = load(a[s])
      release p
      store B[i * 256 +: 256] <- y
    }
  }
}
