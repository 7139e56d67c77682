cake 1
kernel copy(N: i32, A: in f32[N], B: out f32[N])
  require 1 <= N, N <= 1048576
  target sm90
{
  tiles t = persistent(i: ceildiv(N, 256))
  shared a: f32[2][256]
  pipeline p: 2 { a } from fill to drink
  role fill[2]: 2 warps {
    frag x: f32[128] vec 2
    for i in t {
      acquire p as s
      x = load(A[i * 256 + 128 * fill.i +: 128], fill = 0)
      store a[s][128 * fill.i +: 128] <- x
      commit p
    }
  }
  role drink[2]: 1 warp {
    frag y: f32[128] vec 4
    for i in t {
      wait p as s
      y = load(a[s][128 * drink.i +: 128])
      release p
      store B[i * 256 + 128 * drink.i +: 128] <- y
    }
  }
}
