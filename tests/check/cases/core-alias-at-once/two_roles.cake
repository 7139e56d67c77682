cake 1
kernel k(X: in f32[256], Y: out f32[256])
  target sm90
{
  shared a: f32[256], d: f32[256] alias a
  role one: 1 warp {
    frag x: f32[256] vec 1
    x = load(X[0 +: 256])
    store a <- x
    sync one
    x = load(a)
    sync one
    store Y[0 +: 256] <- x
  }
  role two: 1 warp {
    frag x: f32[256] vec 1
    x = load(X[0 +: 256])
    store d <- x
    sync two
    x = load(d)
    store Y[0 +: 256] <- x
  }
}
