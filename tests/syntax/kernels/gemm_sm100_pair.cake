cake 1
kernel gemm_sm100_pair(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  const PM = 256, BN = 256, BK = 64, ST = 6, EN = 64
  require 1 <= M, 1 <= N, 0 <= K, N % 8 == 0, K % 8 == 0
  target sm100
  cluster m = 2 pair m                           # S16: the CTAs of a pair split M of D, and N of B's load
{
  let nk = ceildiv(K, BK)
  tiles t = persistent(m: ceildiv(M, PM), n: ceildiv(N, BN), raster = 8, each = cluster)   # items belong to the pair, not to a CTA
  shared a: bf16[ST][128, BK], b: bf16[ST][128, BK]          # 6 * 32 KB in each CTA: half of A's rows, half of B's
  shared d: bf16[2][128, EN]                                 # 32 KB; sum 229,376 + barriers
  tmem acc: f32[2][128, BN]                                  # 2 * 256 columns in each CTA = all 512
  pipeline ab: ST { a, b } from load on pair to mma on pair[0]    # full barrier lives in CTA 0 and counts both CTAs' bytes; empty lives in each loader's CTA
  pipeline accp: 2 { acc } from mma on pair[0] to epi on pair     # full in both CTAs (multicast commit); empty in CTA 0, arrivals of both CTAs' warps

  role load: 1 warp on pair {
    for (m, n) in t {
      for k in 0 .. nk {
        acquire ab as s
        tma.load a[s] <- A[m*PM + 128*pair.i +: 128, k*BK +: BK]
        tma.load b[s] <- B[n*BN + 128*pair.i +: 128, k*BK +: BK]
        commit ab
      }
    }
  }

  role mma: 1 warp on pair[0] {                   # S16: this role does not exist in CTA 1
    for (m, n) in t {
      if nk > 0 {
        acquire accp as u
        for k in 0 .. nk {
          wait ab as s
          tcgen05.mma acc[u] += a[s] @ b[s].T init k == 0      # leader's instruction; `init` replaces a zero fill
          release ab                               # S3: reader is the tensor engine -> commit, multicast to both CTAs' empty barriers
        }
        commit accp                                  # S3: writer is the tensor engine -> commit, multicast to both full barriers
      }
    }
  }

  role epi: 4 warps aligned 4 on pair {           # S19: warp i of the role is warp i mod 4 of a warpgroup: its lane window
    frag x: f32[128, EN]
    for (m, n) in t {
      if nk > 0 { wait accp as u }                # S4: a slot name may be bound under an item guard and used under the same guard
      for j in 0 .. BN / EN unroll {
        x = 0
        if nk > 0 { tcgen05.ld x <- acc[u][:, j*EN +: EN]; tcgen05.wait.ld }
        if nk > 0 and j == BN / EN - 1 { release accp }           # one arrival a warp, 8 in all, remote from CTA 1; fence::before_thread_sync derived
        tma.store.wait.read 1
        sync epi
        store d[j % 2] <- bf16(x)
        sync epi
        tma.store D[m*PM + 128*pair.i +: 128, n*BN + j*EN +: EN] <- d[j % 2]
      }
    }
    tma.store.wait.read 0
  }
}                                                 # S18: cluster barrier, then dealloc by the allocating warp, both CTAs: derived
