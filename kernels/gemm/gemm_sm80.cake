# Dense GEMM for Ampere and what came after it: D = A * B^T with bf16 inputs, f32 sums and bf16 output.
#
#   A [M, K] and B [N, K] are row-major, K fastest ("TN"); D [M, N] is row-major.
#
# One role does everything. Its warps are a grid of WM rows and WN columns over the tile; with the sizes below each warp computes
# 64 x 64 of it. All threads copy the slices of A and B that lie ST - 1 steps ahead into a ring of ST slots, in one group of copies a step,
# so that the number of a group is the ordinal of its slot. The factors of the next 16 columns are read from shared memory while
# the product of the ones before is computed, across the end of a slot too: the last step of a slot waits for the next one.
#
# K may be 0 (D is then 0), and tiles may hang over the edges: copies fill zeros, stores clip.

cake 1
kernel gemm_sm80(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  # One tile is BM x BN of D, a slot holds BK of K. CTAS is how many CTAs a multiprocessor is to hold: the registers that they may take.
  const BM = 128, BN = 256, BK = 64, ST = 3, WM = 2, WN = 4, CTAS = 1
  # Upper bounds: indices are i32 and may not overflow. Multiples of 8: rows are copied in pieces of 16 bytes.
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  require BK % 32 == 0, ST >= 2  # the two sets of factors take turns from slot to slot; one slot is filled while another is read
  target sm80, sm90
{
  let nk = ceildiv(K, BK)
  tiles t = grid(m: ceildiv(M, BM), n: ceildiv(N, BN), raster = 8) ctas CTAS
  shared a: bf16[ST][BM, BK], b: bf16[ST][BN, BK]  # 3 * (16 + 32) KB; no pipeline: slots are named by a ring index

  role main: WM * WN warps over (WM, WN) {
    frag acc: f32[BM, BN], fa: bf16[2][BM, 16], fb: bf16[2][BN, 16]  # 128 + 2 * (16 + 16) registers a thread
    for (m, n) in t {
      acc = 0
      for k in 0 .. ST - 1 unroll {  # groups 0 .. ST - 2
        if k < nk {
          cp.async a[k] <- A[m * BM +: BM, k * BK +: BK]
          cp.async b[k] <- B[n * BN +: BN, k * BK +: BK]
        }
        cp.async.commit  # always: an empty group keeps the count
      }
      cp.async.wait ST - 2  # own pieces of slot 0 have landed ...
      sync main  # ... and everyone's
      if 0 < nk {
        ldmatrix fa[0] <- a[0][:, 0 +: 16]
        ldmatrix fb[0] <- b[0][:, 0 +: 16]
      }
      for k in 0 .. nk {
        for c in 0 .. BK / 16 unroll {
          if c + 1 < BK / 16 {
            ldmatrix fa[(c + 1) % 2] <- a[k % ST][:, (c + 1) * 16 +: 16]
            ldmatrix fb[(c + 1) % 2] <- b[k % ST][:, (c + 1) * 16 +: 16]
          } else {
            cp.async.wait ST - 2  # the group of slot k + 1 is complete: behind it are at most ST - 2 others
            sync main  # it has landed for everyone, and everyone has read slot k, which the next step fills
            if k + 1 < nk {
              ldmatrix fa[0] <- a[(k + 1) % ST][:, 0 +: 16]
              ldmatrix fb[0] <- b[(k + 1) % ST][:, 0 +: 16]
            }
          }
          if c == 0 {
            if k + ST - 1 < nk {
              cp.async a[(k + ST - 1) % ST] <- A[m * BM +: BM, (k + ST - 1) * BK +: BK]
              cp.async b[(k + ST - 1) % ST] <- B[n * BN +: BN, (k + ST - 1) * BK +: BK]
            }
            cp.async.commit
          }
          mma.sync acc += fa[c % 2] @ fb[c % 2].T
        }
      }
      cp.async.wait 0  # the groups left are empty, or nk < ST - 1
      store D[m * BM +: BM, n * BN +: BN] <- bf16(acc)
    }
  }
}
