# Grouped GEMM for Hopper with items on demand: moe_grouped_sm90, whose items a CTA takes when it gets free.
#
#   D[r, :] = A[r, :] * W[e]^T   for the expert e that row r belongs to; bf16 inputs, f32 sums, bf16 output
#
# Items are those of moe_grouped_sm90 in the same order: one block of BM rows of one expert and BN columns. One warp draws them from
# NEXT, walks OFF and tells the others; so a CTA that has had a short block, or that started late, takes more of the rest.

cake 1
kernel moe_grouped_dynamic_sm90(E: i32, T: i32, N: i32, K: i32, OFF: in i32[E + 1], A: in bf16[T, K],
                                W: in bf16[E, N, K], D: out bf16[T, N], NEXT: workspace i32[1])
  const BM = 128, BN = 256, BK = 64, ST = 4, EN = 64
  # Upper bounds: indices are i32 and may not overflow.
  require 0 <= E, E <= 65536, 0 <= T, T <= 4194304, 1 <= N, N <= 65536, 1 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  assume OFF[0] == 0, OFF[E] == T, monotone(OFF)
  target sm90
{
  let nk = ceildiv(K, BK)

  # Expert by expert; in one expert the blocks of rows run fastest, so that CTAs which work at one time share a piece of W.
  tiles t = ragged(rows: OFF, block = BM) * grid(n: ceildiv(N, BN)) order group_major dynamic NEXT

  shared a: bf16[ST][BM, BK]  # 4 * 16 KB
  shared b: bf16[ST][BN, BK]  # 4 * 32 KB
  shared d: bf16[2][2][64, EN]  # [math.i][slot], 4 * 8 KB
  pipeline ab: ST { a, b } from load to math

  role load: 1 warp regs 40 {
    for (e, r0, r1, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[r0 +: BM, k * BK +: BK]  # may reach into the next expert's rows
        tma.load b[s] <- W[e, n * BN +: BN, k * BK +: BK]  # of rank 3: past N there are zeros, not the next expert
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
        wgmma acc += a[s][64 * math.i +: 64, :] @ b[s].T
        if k > 0 {
          wgmma.wait 1
          release ab
        }
      }
      wgmma.wait 0
      drain ab

      let row = r0 + 64 * math.i
      if row + 64 <= r1 {
        # All 64 rows belong to this expert. The guard is the same for the whole instance.
        for j in 0 .. BN / EN unroll {
          tma.store.wait.read 1
          sync math
          store d[math.i][j % 2] <- bf16(acc[:, j * EN +: EN])
          sync math
          tma.store D[row +: 64, n * BN + j * EN +: EN] <- d[math.i][j % 2]
        }
      } else {
        # A bulk store clips at the tensor's edge, and the end of an expert is none.
        store D[row +: 64, n * BN +: BN] <- bf16(acc) clip r1
      }
    }
    tma.store.wait.read 0
  }
}
