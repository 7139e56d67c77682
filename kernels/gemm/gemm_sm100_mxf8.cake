# Block-scaled GEMM for Blackwell (MXFP8): D = (A * SA) * (B * SB)^T with e4m3 inputs, a scale for each 32 elements of a row along K,
# f32 sums in tensor memory and bf16 output.
#
#   A [M, K] and B [N, K] are row-major, K fastest ("TN"); D [M, N] is row-major.
#   SA and SB hold the scales (ue8m0: powers of two) in blocks of 128 rows and 128 of K, 512 bytes each, as the tensor engine wants
#   them: the scale of row m and piece s of the block's K is SA[m / 128, k / 128, m % 32, 4 * (m % 128 / 32) + s].
#
# Roles as in gemm_sm100. The scales of a slot go along with it: the mma role lets the engine copy them into tensor memory, in front
# of the products that take them.
#
# Assembled, not executed: no device of this target was at hand.

cake 1
kernel gemm_sm100_mxf8(M: i32, N: i32, K: i32, A: in e4m3[M, K], SA: in ue8m0[ceildiv(M, 128), K / 128, 32, 16],
                       B: in e4m3[N, K], SB: in ue8m0[ceildiv(N, 128), K / 128, 32, 16], D: out bf16[M, N])
  # One tile is 128 x BN of D; a slot holds BK of K, one block of scales; the output leaves in columns of EN.
  const BN = 128, BK = 128, ST = 5, EN = 64
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 128 == 0
  target sm100
{
  let nk = K / BK  # uniform: the same value in every role

  # The raster walks groups of 8 tiles of m, so that the rows of A and B read at one time stay in the L2 cache.
  tiles t = persistent(m: ceildiv(M, 128), n: ceildiv(N, BN), raster = 8)

  shared a: e4m3[ST][128, BK], b: e4m3[ST][BN, BK]  # 5 * 32 KB
  shared sa: ue8m0[ST][32, 16], sb: ue8m0[ST][32, 16]  # 5 * 1 KB
  shared d: bf16[2][128, EN]  # 2 * 16 KB
  tmem acc: f32[2][128, BN]  # 2 * 128 columns
  tmem ta: ue8m0[ST][128, 4], tb: ue8m0[ST][BN, 4]  # 5 * 8 columns
  pipeline ab: ST { a, b, sa, sb } from load to mma
  pipeline accp: 2 { acc } from mma to epi

  role load: 1 warp {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * 128 +: 128, k * BK +: BK]
        tma.load b[s] <- B[n * BN +: BN, k * BK +: BK]
        tma.load sa[s] <- SA[m, k, 0 +: 32, 0 +: 16]
        tma.load sb[s] <- SB[n, k, 0 +: 32, 0 +: 16]
        commit ab  # by transaction bytes: 32 KB of factors, 1 KB of scales
      }
    }
  }

  role mma: 1 warp {
    for (m, n) in t {
      if nk > 0 {
        acquire accp as u
        for k in 0 .. nk {
          wait ab as s
          # The engine copies in order with its products, and slot s is filled again only when it has done both.
          tcgen05.cp ta[s] <- sa[s]
          tcgen05.cp tb[s] <- sb[s]
          tcgen05.mma acc[u] += a[s] @ b[s].T init k == 0 scale_a ta[s] scale_b tb[s]
          release ab
        }
        commit accp
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
