cake 1
kernel of_both(A: in bf16[256, 64], B: in bf16[128, 64], D: out f32[256, 128])
  target sm100
  cluster m = 2 pair m
{
  shared a: bf16[1][128, 64], b: bf16[1][64, 64]
  tmem acc: f32[1][128, 128]
  pipeline ab: 1 { a, b } from load, first to mma
  pipeline done: 1 { acc } from mma to epi
  role load: 1 warp on pair {
    acquire ab as s
    tma.load a[s] <- A[128 * pair.i +: 128, 0 +: 64]
    commit ab
  }
  role first: 1 warp on pair[0] {
    acquire ab as s
    tma.load b[s] <- B[64 * pair.i +: 64, 0 +: 64]
    commit ab
  }
  role mma: 1 warp on pair[0] {
    acquire done as u
    wait ab as s
    tcgen05.mma acc[u] = a[s] @ b[s].T
    release ab
    commit done
  }
  role epi: 4 warps aligned 4 on pair {
    frag x: f32[128, 128]
    wait done as u
    tcgen05.ld x <- acc[u]
    tcgen05.wait.ld
    release done
    store D[128 * pair.i +: 128, 0 +: 128] <- x
  }
}
