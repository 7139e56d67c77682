# Block-scaled GEMM of 4-bit floats for Blackwell (NVFP4): D = alpha * (A * SA) * (B * SB)^T with e2m1 inputs, an e4m3 scale for each 16
# numbers of a row along K, f32 sums in tensor memory and bf16 output. alpha undoes what the scales of whole tensors took out.
#
#   A [M, K] and B [N, K] are row-major, K fastest ("TN"), two numbers a byte, the first in the low half, so that a row is KP = K / 2
#   bytes; D [M, N] is row-major.
#   SA and SB hold the scales (e4m3, none negative) in blocks of 128 rows and 64 of K, 512 bytes each, as the tensor engine wants them:
#   the scale of row m and piece s of the block's K is SA[m / 128, k / 64, m % 32, 4 * (m % 128 / 32) + s].
#
# Roles as in gemm_sm100. A slot holds four blocks of scales along K; in front of the products that take a block, the engine copies it
# into tensor memory.
#
# Assembled, not executed: no device of this target was at hand.

cake 1
kernel gemm_sm100_nvf4(M: i32, N: i32, KP: i32, A: in e2m1x2[M, KP], SA: in e4m3[ceildiv(M, 128), KP / 32, 32, 16],
                       B: in e2m1x2[N, KP], SB: in e4m3[ceildiv(N, 128), KP / 32, 32, 16], D: out bf16[M, N],
                       alpha: f32)
  # One tile is 128 x BN of D; a slot holds 256 numbers of K, KB blocks of scales; the output leaves in columns of EN.
  const BN = 128, KB = 4, ST = 4, EN = 64
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= KP, KP <= 8388608, N % 8 == 0, KP % 128 == 0
  target sm100
{
  let nk = KP / 128  # uniform: the same value in every role

  # The raster walks groups of 8 tiles of m, so that the rows of A and B read at one time stay in the L2 cache.
  tiles t = persistent(m: ceildiv(M, 128), n: ceildiv(N, BN), raster = 8)

  shared a: e2m1x2[ST][128, 128], b: e2m1x2[ST][BN, 128]  # 4 * 32 KB
  shared sa: e4m3[ST][KB][32, 16], sb: e4m3[ST][KB][32, 16]  # 4 * 4 KB
  shared d: bf16[2][128, EN]  # 2 * 16 KB
  tmem acc: f32[2][128, BN]  # 2 * 128 columns
  tmem ta: e4m3[ST][KB][128, 4], tb: e4m3[ST][KB][BN, 4]  # 4 * 4 * 8 columns
  pipeline ab: ST { a, b, sa, sb } from load to mma
  pipeline accp: 2 { acc } from mma to epi

  role load: 1 warp {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * 128 +: 128, k * 128 +: 128]
        tma.load b[s] <- B[n * BN +: BN, k * 128 +: 128]
        for j in 0 .. KB unroll {
          tma.load sa[s][j] <- SA[m, k * KB + j, 0 +: 32, 0 +: 16]
          tma.load sb[s][j] <- SB[n, k * KB + j, 0 +: 32, 0 +: 16]
        }
        commit ab  # by transaction bytes: 32 KB of factors, 4 KB of scales
      }
    }
  }

  role mma: 1 warp {
    for (m, n) in t {
      if nk > 0 {
        acquire accp as u
        for k in 0 .. nk {
          wait ab as s
          for j in 0 .. KB unroll {
            # The engine copies in order with its products, and slot s is filled again only when it has done both.
            tcgen05.cp ta[s][j] <- sa[s][j]
            tcgen05.cp tb[s][j] <- sb[s][j]
            tcgen05.mma acc[u] += a[s][:, 32 * j +: 32] @ b[s][:, 32 * j +: 32].T init k == 0 and j == 0 scale_a ta[s][j] scale_b tb[s][j]
          }
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
        store d[j % 2] <- bf16(x * alpha)
        sync epi
        tma.store D[m * 128 +: 128, n * BN + j * EN +: EN] <- d[j % 2]  # the leader's; clipped at M, N
      }
    }
    tma.store.wait.read 0  # nothing may read shared memory after exit
  }
}
