cake 1
kernel copy(M: i32, X: in f32[M, 32], Y: out f32[M, 32])
  require 1 <= M, M <= 65536
  target sm90
{
  tiles t = persistent(m: ceildiv(M, 64))
  shared s: f32[2][64, 32]
  pipeline p: 2 { s } from load to send
  role load: 1 warp {
    for m in t {
      acquire p as i
      tma.load s[i] <- X[m * 64 +: 64, 0 +: 32]
      commit p
    }
  }
  role send: 1 warp {
    for m in t {
      wait p as i
      tma.store Y[m * 64 +: 64, 0 +: 32] <- s[i]
      tma.store.wait.read 0
      sync send
      release p
    }
  }
}
