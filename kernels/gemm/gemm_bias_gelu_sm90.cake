# Dense GEMM for Hopper with a fused epilogue: D = gelu(A * B^T + BIAS), bf16 inputs and output, f32 sums, bias and gelu in f32.
#
#   A [M, K] and B [N, K] are row-major, K fastest ("TN"); BIAS [N] is one number a column; D [M, N] is row-major.
#   gelu(x) = x * (1 + erf(x / sqrt(2))) / 2, as it is defined and not by its tanh form.
#
# Who does what is as in gemm_sm90. The bias of a tile comes by a pipeline of its own: the load role sends it ahead of the tile's
# first slot, and the math role reads it when the sums are complete.

cake 1
kernel gemm_bias_gelu_sm90(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], BIAS: in bf16[N],
                           D: out bf16[M, N])
  # One tile is BM x BN of D; a slot holds BK of K; the output leaves in columns of EN, the 128 bytes of a swizzled row.
  const BM = 128, BN = 256, BK = 64, ST = 4, EN = 64
  # Upper bounds: indices are i32 and may not overflow. Multiples of 8: rows of a tensor map are whole 16-byte pieces.
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  target sm90
  cluster m = 2  # the two CTAs differ in m and share n
{
  let nk = ceildiv(K, BK)  # uniform: the same value in every role
  tiles t = persistent(m: ceildiv(M, BM), n: ceildiv(N, BN), raster = 8)

  shared a: bf16[ST][BM, BK]  # 4 * 16 KB
  shared b: bf16[ST][BN, BK]  # 4 * 32 KB
  shared d: bf16[2][2][64, EN]  # [math.i][slot], 4 * 8 KB
  shared bias: bf16[2][BN]  # 2 * 512 bytes; the sum is 230,400 bytes and the barriers
  pipeline ab: ST { a, b } from load to math
  pipeline bp: 2 { bias } from load to math

  # Alone in its warpgroup, so `regs` is legal; three pad warps fill it up.
  role load: 1 warp regs 40 {
    for (m, n) in t {
      acquire bp as u
      tma.load bias[u] <- BIAS[n * BN +: BN]  # 0 past N
      commit bp
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m * BM +: BM, k * BK +: BK]
        tma.load b[s] <- B[n * BN +: BN, k * BK +: BK] multicast m  # each CTA loads its half and sends it to both
        commit ab
      }
    }
  }

  role math[2]: 1 warpgroup regs 232 {
    frag acc: f32[64, BN]  # 128 registers a thread
    for (m, n) in t {
      acc = 0  # stays true at nk == 0
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
      wait bp as u

      for j in 0 .. BN / EN unroll {
        let x = acc[:, j * EN +: EN] + f32(load(bias[u][j * EN +: EN], along = cols(acc[:, j * EN +: EN])))
        tma.store.wait.read 1  # slot j % 2 may be written again ...
        sync math  # ... and every warp of this instance knows it
        store d[math.i][j % 2] <- bf16(gelu(x))
        sync math
        tma.store D[m * BM + 64 * math.i +: 64, n * BN + j * EN +: EN] <- d[math.i][j % 2]  # clipped at M, N
      }
      release bp
    }
    tma.store.wait.read 0  # nothing may read shared memory after exit
  }
}
