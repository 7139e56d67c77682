cake 1
kernel gemm_sm90(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  const BM = 128, BN = 256, BK = 64, ST = 4, EN = 64
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0    # bounds: i32 indices may not overflow
  target sm90
  cluster m = 2                                   # the two CTAs differ in m and share n
{
  let nk = ceildiv(K, BK)                           # uniform: the same value in every role
  tiles t = persistent(m: ceildiv(M, BM), n: ceildiv(N, BN), raster = 8)   # S9: a cluster takes m, m+1 of one n; m may lie past the end
  shared a: bf16[ST][BM, BK]                      # 4 * 16 KB
  shared b: bf16[ST][BN, BK]                      # 4 * 32 KB
  shared d: bf16[2][2][64, EN]                    # [math.i][slot], 4 * 8 KB; sum 229,376 + barriers
  pipeline ab: ST { a, b } from load to math

  role load: 1 warp regs 40 {                    # S20: alone in its warpgroup, so `regs` is legal; three pad warps
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s                           # multicast: waits for the releases of BOTH CTAs' math roles (S15, derived)
        tma.load a[s] <- A[m*BM +: BM, k*BK +: BK]
        tma.load b[s] <- B[n*BN +: BN, k*BK +: BK] multicast m    # S15: each CTA loads its half and sends it to both
        commit ab                                  # S3: transaction bytes 16 KB + 2 * 16 KB, own and peer's
      }
    }
  }

  role math[2]: 1 warpgroup regs 232 {           # S1: every instance consumes every slot
    frag acc: f32[64, BN]
    for (m, n) in t {
      acc = 0                                     # stays true at nk == 0; see hardware.md 5 on zeroing under a branch
      for k in 0 .. nk {
        wait ab as s
        wgmma acc += a[s][64*math.i +: 64, :] @ b[s].T      # S7: one statement, one group
        if k > 0 { wgmma.wait 1; release ab }     # S4: the oldest held slot, the one of k-1
      }
      wgmma.wait 0
      drain ab                                    # S4: whatever is still held: nothing at nk == 0, one slot otherwise
      for j in 0 .. BN / EN unroll {
        tma.store.wait.read 1                     # S2: the leader's bulk groups; slot j % 2 may be written again
        sync math                               # ... and every warp of this instance knows it
        store d[math.i][j % 2] <- bf16(acc[:, j*EN +: EN])
        sync math                               # S12: the proxy fence of each writer is derived here
        tma.store D[m*BM + 64*math.i +: 64, n*BN + j*EN +: EN] <- d[math.i][j % 2]   # leader; clipped at M, N
      }
    }
    tma.store.wait.read 0                         # S17: nothing may read shared memory after exit
    # the ring d[..][j % 2] restarts at every item: right because BN / EN is even; at BN / EN = 3 the proof must fail (group left by j = 2, slot 0)
  }
}
