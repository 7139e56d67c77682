cake 1
kernel gemm_sm80(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  const BM = 128, BN = 128, BK = 32, ST = 4
  require 1 <= M, 1 <= N, 0 <= K, N % 8 == 0, K % 8 == 0
  target sm80, sm90
{
  let nk = ceildiv(K, BK)
  tiles t = grid(m: ceildiv(M, BM), n: ceildiv(N, BN), raster = 8)
  shared a: bf16[ST][BM, BK], b: bf16[ST][BN, BK]       # no pipeline: slots are named by ring index (S5)

  role main: 8 warps over (2, 4) {                        # S6: the warp grid over (rows, columns) of fragments
    frag acc: f32[BM, BN], fa: bf16[2][BM, 16], fb: bf16[2][BN, 16]       # [2]: constant-indexed register sets
    for (m, n) in t {
      acc = 0
      for k in 0 .. ST - 1 unroll {                     # prologue: groups 0 .. ST-2
        if k < nk {
          cp.async a[k] <- A[m*BM +: BM, k*BK +: BK]    # 16-byte pieces, zero-filled past the edge
          cp.async b[k] <- B[n*BN +: BN, k*BK +: BK]
        }
        cp.async.commit                                 # always: an empty group keeps "group number == slot ordinal"
      }
      for k in 0 .. nk {
        cp.async.wait ST - 2                            # own pieces of slot k have landed
        sync main                                       # everyone's have; and everyone has finished reading slot k-1
        if k + ST - 1 < nk {
          cp.async a[(k + ST - 1) % ST] <- A[m*BM +: BM, (k + ST - 1)*BK +: BK]
          cp.async b[(k + ST - 1) % ST] <- B[n*BN +: BN, (k + ST - 1)*BK +: BK]
        }
        cp.async.commit
        ldmatrix fa[0] <- a[k % ST][:, 0 +: 16]
        ldmatrix fb[0] <- b[k % ST][:, 0 +: 16]
        for c in 0 .. BK / 16 unroll {
          if c + 1 < BK / 16 {
            ldmatrix fa[(c + 1) % 2] <- a[k % ST][:, (c + 1)*16 +: 16]
            ldmatrix fb[(c + 1) % 2] <- b[k % ST][:, (c + 1)*16 +: 16]
          }
          mma.sync acc += fa[c % 2] @ fb[c % 2].T
        }
      }
      cp.async.wait 0                                   # S17 (the groups left are empty, or nk < ST-1)
      store D[m*BM +: BM, n*BN +: BN] <- bf16(acc)      # clipped; 4-byte stores, or staged through a[0..] after one more sync
    }
  }
}
