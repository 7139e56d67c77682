# Dense GEMM for Hopper: D = A * B^T with bf16 inputs, f32 sums and bf16 output.
#
#   A [M, K] and B [N, K] are row-major, K fastest ("TN"); D [M, N] is row-major.
#
# Who does what, in each CTA of a cluster of two:
#   load   one warp fills a ring of ST slots by bulk tensor copies; B is shared by both CTAs, so each loads
#          half of it and multicasts that half to the other.
#   math   two warpgroups, 64 rows of the tile each; one matrix group stays in flight while the next slot is waited for.
#
# The kernel is persistent: a CTA takes tiles until none is left, so the loads of one tile overlap the stores of the
# one before. K may be 0 (D is then 0) and any number of tiles may be missing at the edges: loads fill 0, stores clip.

cake 1
kernel gemm_sm90(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  # One tile is BM x BN of D; a slot holds BK of K; the output leaves in columns of EN, the 128 bytes of a swizzled row.
  const BM = 128, BN = 256, BK = 64, ST = 4, EN = 64
  # Upper bounds: indices are i32 and may not overflow. Multiples of 8: rows of a tensor map are whole 16-byte pieces.
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  target sm90
  cluster m = 2  # the two CTAs differ in m and share n
{
  let nk = ceildiv(K, BK)  # uniform: the same value in every role

  # A cluster takes m and m + 1 of one n; m may lie past the end. The raster walks groups of 8 cluster tiles of m, so
  # that the rows of A and B that the machine reads at one time stay in the L2 cache.
  tiles t = persistent(m: ceildiv(M, BM), n: ceildiv(N, BN), raster = 8)

  shared a: bf16[ST][BM, BK]  # 4 * 16 KB
  shared b: bf16[ST][BN, BK]  # 4 * 32 KB
  shared d: bf16[2][2][64, EN]  # [math.i][slot], 4 * 8 KB; the sum is 229,376 bytes and the barriers
  pipeline ab: ST { a, b } from load to math

  # Alone in its warpgroup, so `regs` is legal; three pad warps fill it up.
  role load: 1 warp regs 40 {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s  # under multicast this waits for the releases of both CTAs' math roles
        tma.load a[s] <- A[m * BM +: BM, k * BK +: BK]
        tma.load b[s] <- B[n * BN +: BN, k * BK +: BK] multicast m  # each CTA loads its half and sends it to both
        commit ab  # by transaction bytes: 16 KB of a and 2 * 16 KB of b, own and the peer's
      }
    }
  }

  # Every instance consumes every slot: it reads its 64 rows of a and all of b.
  role math[2]: 1 warpgroup regs 232 {
    frag acc: f32[64, BN]  # 128 registers a thread
    for (m, n) in t {
      acc = 0  # stays true at nk == 0
      for k in 0 .. nk {
        wait ab as s
        wgmma acc += a[s][64 * math.i +: 64, :] @ b[s].T  # one statement is one group
        if k > 0 {
          # The group of k - 1 has retired once at most one is in flight: its slot, the oldest held, goes back.
          wgmma.wait 1
          release ab
        }
      }
      wgmma.wait 0
      drain ab  # whatever is still held: nothing at nk == 0, one slot otherwise

      for j in 0 .. BN / EN unroll {
        tma.store.wait.read 1  # of the leader's bulk groups: slot j % 2 may be written again ...
        sync math  # ... and every warp of this instance knows it
        store d[math.i][j % 2] <- bf16(acc[:, j * EN +: EN])
        sync math  # each writer's fence towards the asynchronous proxy is derived here
        tma.store D[m * BM + 64 * math.i +: 64, n * BN + j * EN +: EN] <- d[math.i][j % 2]  # the leader's; clipped at M, N
      }
    }
    tma.store.wait.read 0  # nothing may read shared memory after exit
    # The ring d[..][j % 2] restarts at every tile. That is right because BN / EN is even; at BN / EN = 3 the group left
    # by j = 2 would still read slot 0 when the next tile writes it.
  }
}
