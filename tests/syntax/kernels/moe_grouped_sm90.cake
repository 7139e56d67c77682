cake 1
kernel moe_grouped_sm90(E: i32, T: i32, N: i32, K: i32, OFF: in i32[E + 1],
                        A: in bf16[T, K], W: in bf16[E, N, K], D: out bf16[T, N])
  const BM = 128, BN = 256, BK = 64, ST = 4, EN = 64
  require 0 <= E, 0 <= T, 1 <= N, 1 <= K, N % 8 == 0, K % 8 == 0
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)   # empty groups allowed
  target sm90
{
  let nk = ceildiv(K, BK)
  tiles t = ragged(rows: OFF, block = BM) * grid(n: ceildiv(N, BN)) order group_major    # item: e, r0, r1 = OFF[e+1], n; empty groups yield none
  shared a: bf16[ST][BM, BK], b: bf16[ST][BN, BK], d: bf16[2][2][64, EN]
  pipeline ab: ST { a, b } from load to math

  role load: 1 warp regs 40 {
    for (e, r0, r1, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[r0 +: BM, k*BK +: BK]        # may take in the next group's rows: computed, never stored
        tma.load b[s] <- W[e, n*BN +: BN, k*BK +: BK]   # rank-3 map: N tail does not reach the next expert
        commit ab
      }
    }
  }

  role math[2]: 1 warpgroup regs 232 {
    frag acc: f32[64, BN]
    for (e, r0, r1, n) in t {
      acc = 0
      for k in 0 .. nk {
        wait ab as s
        wgmma acc += a[s][64*math.i +: 64, :] @ b[s].T
        if k > 0 { wgmma.wait 1; release ab }
      }
      wgmma.wait 0
      drain ab
      let row = r0 + 64*math.i
      if row + 64 <= r1 {                          # S10d: uniform in the instance, no pipeline verb of a shared pipeline inside; leader groups and `sync math` only
        for j in 0 .. BN / EN unroll {
          tma.store.wait.read 1;  sync math
          store d[math.i][j % 2] <- bf16(acc[:, j*EN +: EN])
          sync math
          tma.store D[row +: 64, n*BN + j*EN +: EN] <- d[math.i][j % 2]
        }
      } else {
        store D[row +: 64, n*BN +: BN] <- bf16(acc) clip r1      # TMA clips at tensor edges only: a ragged group's end is not one
      }
    }
    tma.store.wait.read 0
  }
}
