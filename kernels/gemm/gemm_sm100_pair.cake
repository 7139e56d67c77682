# Dense GEMM for Blackwell, two CTAs a tile: D = A * B^T with bf16 inputs, f32 sums in tensor memory and bf16 output.
#
#   A [M, K] and B [N, K] are row-major, K fastest ("TN"); D [M, N] is row-major.
#
# The two CTAs of a cluster are a pair: one product covers 256 rows and BN columns. Each CTA loads and holds 128 rows of A,
# half of the BN rows of B, and the 128 rows of the result that belong to its rows of A.
#
#   load   in each CTA: its half of A and of B.
#   mma    in the first CTA alone: issues the products for both.
#   epi    in each CTA: moves its 128 rows of a finished tile to D.
#
# There are two accumulators, which take all of tensor memory. K may be 0 (D is then 0) and any number of tiles may be
# missing at the edges: loads fill 0, stores clip.
#
# Assembled, not executed: no device of this target was at hand.

cake 1
kernel gemm_sm100_pair(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  # One tile of the pair is PM x BN of D; a slot holds BK of K; the output leaves in columns of EN.
  const PM = 256, BN = 256, BK = 64, ST = 6, EN = 64
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  target sm100
  cluster m = 2 pair m  # the CTAs of a pair split M of D, and N of B's load
{
  let nk = ceildiv(K, BK)  # uniform: the same value in every role

  # Items belong to the pair: both CTAs take the same m and n.
  tiles t = persistent(m: ceildiv(M, PM), n: ceildiv(N, BN), raster = 8, each = cluster)

  shared a: bf16[ST][PM / 2, BK]  # 6 * 16 KB in each CTA: half of A's rows
  shared b: bf16[ST][BN / 2, BK]  # 6 * 16 KB in each CTA: half of B's rows
  shared d: bf16[2][PM / 2, EN]  # 2 * 16 KB; the sum is 229,376 bytes and the barriers
  tmem acc: f32[2][PM / 2, BN]  # 2 * 256 columns in each CTA: all 512

  # Full barriers live where the slot is read, in the first CTA, and count the bytes of both; empty ones in each loader's CTA.
  pipeline ab: ST { a, b } from load on pair to mma on pair[0]
  # Full in both CTAs; empty in the first, where the warps of both arrive.
  pipeline accp: 2 { acc } from mma on pair[0] to epi on pair

  role load: 1 warp on pair {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * PM + PM / 2 * pair.i +: PM / 2, k * BK +: BK]
        tma.load b[s] <- B[n * BN + BN / 2 * pair.i +: BN / 2, k * BK +: BK]
        commit ab  # by transaction bytes: 32 KB from each CTA
      }
    }
  }

  role mma: 1 warp on pair[0] {
    for (m, n) in t {
      if nk > 0 {
        acquire accp as u
        for k in 0 .. nk {
          wait ab as s
          tcgen05.mma acc[u] += a[s] @ b[s].T init k == 0  # both CTAs' halves, by one instruction of the first one's leader
          release ab  # the engine arrives at both CTAs' empty barriers when it has read the slot
        }
        commit accp  # the engine arrives at both CTAs' full barriers when the tile is done
      }
    }
  }

  # Warp i of the role reaches lanes 32 i to 32 i + 31, so that each thread has one row of the CTA's half.
  role epi: 4 warps aligned 4 on pair {
    frag x: f32[PM / 2, EN]
    for (m, n) in t {
      if nk > 0 {
        wait accp as u
      }
      for j in 0 .. BN / EN unroll {
        x = 0  # stays true at nk == 0
        if nk > 0 {
          tcgen05.ld x <- acc[u][:, j * EN +: EN]
          tcgen05.wait.ld
          if j == BN / EN - 1 {
            release accp  # every row is in registers; one arrival a warp, 8 in all, those of the second CTA remote
          }
        }
        tma.store.wait.read 1  # of the leader's bulk groups: slot j % 2 may be written again ...
        sync epi  # ... and every warp knows it
        store d[j % 2] <- bf16(x)
        sync epi
        tma.store D[m * PM + PM / 2 * pair.i +: PM / 2, n * BN + j * EN +: EN] <- d[j % 2]  # the leader's; clipped at M, N
      }
    }
    tma.store.wait.read 0  # nothing may read shared memory after exit
  }
}
