cake 1
kernel add(B: i32, H: i32, N: i32, X: in f32[B, H, N], Y: out f32[B, H, N])
  require 1 <= B, B <= 1024, 1 <= H, H <= 1024, 1 <= N, N <= 65536, N % 4 == 0
  target sm90
{
  tiles t = persistent(i: ceildiv(N, 512), h: H, b: B)
  role main: 4 warps {
    frag x: f32[512] vec 4
    for (i, h, b) in t {
      x = load(X[b, h, i * 512 +: 512])
      store Y[b, h, i * 512 +: 512] <- x + 1
    }
  }
}
