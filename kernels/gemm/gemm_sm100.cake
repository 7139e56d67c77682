# Dense GEMM for Blackwell, one CTA a tile: D = A * B^T with bf16 inputs, f32 sums in tensor memory and bf16 output.
#
#   A [M, K] and B [N, K] are row-major, K fastest ("TN"); D [M, N] is row-major.
#
# Who does what, in each CTA:
#   load   one warp fills a ring of ST slots by bulk tensor copies.
#   mma    one warp issues the products; the tensor engine itself tells when a slot is read and when a tile is done.
#   epi    four warps move a finished tile from tensor memory through shared memory to D.
#
# There are two accumulators: while epi empties one, mma fills the other. The kernel is persistent. K may be 0 (D is then
# 0) and any number of tiles may be missing at the edges: loads fill 0, stores clip.
#
# Assembled, not executed: no device of this target was at hand.

cake 1
kernel gemm_sm100(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  # One tile is 128 x BN of D, a row for each lane of tensor memory; a slot holds BK of K; the output leaves in columns of EN.
  const BN = 256, BK = 64, ST = 4, EN = 64
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  target sm100
{
  let nk = ceildiv(K, BK)  # uniform: the same value in every role

  # The raster walks groups of 8 tiles of m, so that the rows of A and B read at one time stay in the L2 cache.
  tiles t = persistent(m: ceildiv(M, 128), n: ceildiv(N, BN), raster = 8)

  shared a: bf16[ST][128, BK]  # 4 * 16 KB
  shared b: bf16[ST][BN, BK]  # 4 * 32 KB
  shared d: bf16[2][128, EN]  # 2 * 16 KB; the sum is 229,376 bytes and the barriers
  tmem acc: f32[2][128, BN]  # 2 * 256 columns: all 512
  pipeline ab: ST { a, b } from load to mma
  pipeline accp: 2 { acc } from mma to epi

  role load: 1 warp {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * 128 +: 128, k * BK +: BK]
        tma.load b[s] <- B[n * BN +: BN, k * BK +: BK]
        commit ab  # by transaction bytes: 16 KB of a and 32 KB of b
      }
    }
  }

  role mma: 1 warp {
    for (m, n) in t {
      if nk > 0 {
        acquire accp as u
        for k in 0 .. nk {
          wait ab as s
          tcgen05.mma acc[u] += a[s] @ b[s].T init k == 0  # the leader's instruction; `init` replaces a zero fill
          release ab  # the reader is the tensor engine: it arrives itself when it has read the slot
        }
        commit accp  # the writer is the tensor engine: it arrives itself when the tile is done
      }
    }
  }

  # Warp i of the role reaches lanes 32 i to 32 i + 31, so that each thread has one row of the tile.
  role epi: 4 warps aligned 4 {
    frag x: f32[128, EN]
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
            release accp  # every row is in registers: mma may fill the accumulator again
          }
        }
        tma.store.wait.read 1  # of the leader's bulk groups: slot j % 2 may be written again ...
        sync epi  # ... and every warp knows it
        store d[j % 2] <- bf16(x)
        sync epi
        tma.store D[m * 128 +: 128, n * BN + j * EN +: EN] <- d[j % 2]  # the leader's; clipped at M, N
      }
    }
    tma.store.wait.read 0  # nothing may read shared memory after exit
  }
}
