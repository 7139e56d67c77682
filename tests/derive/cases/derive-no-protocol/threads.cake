#! without protocol mbarrier
cake 1
kernel k(A: in f32[128], B: out f32[128])
  target sm80
{
  shared a: f32[2][128]
  pipeline p: 2 { a } from fill to drink
  role fill: 1 warp {
    frag x: f32[128] vec 4
    acquire p as s
    x = load(A[0 +: 128])
    store a[s] <- x
    commit p
  }
  role drink: 1 warp {
    frag x: f32[128] vec 4
    wait p as s
    x = load(a[s])
    store B[0 +: 128] <- x
    release p
  }
}
