cake 1 derived
kernel gemm_sm80(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  target sm80
{
  let nk = ceildiv(K, 64)
  let t_m = ceildiv(M, 128), t_n = ceildiv(N, 256)
  let t_total = t_m * t_n
  launch t_total ctas 1
  shared a: bf16[3][128, 64] at 0 swizzle 128, b: bf16[3][256, 64] at 49152 swizzle 128
  role main: 8 warps at 0 {
    frag acc: f32[128, 256] grid (2, 4) layout mma, fa: bf16[2][128, 16] grid (4,
        2) layout mma_a, fb: bf16[2][256, 16] grid (2, 4) layout mma_b
    let t_i = cluster.id
    let t_group = t_n * 8
    let t_start = t_i / t_group * 8
    let t_height = clamp(t_m - t_start, 1, 8)
    let t_inside = t_i % t_group
    let m = t_start + t_inside % t_height, n = t_inside / t_height
    acc = 0.0
    if 0 < nk {
      cp.async a[0] <- A[m * 128 +: 128, 0 +: 64] by 16
      cp.async b[0] <- B[n * 256 +: 256, 0 +: 64] by 16
    }
    cp.async.commit
    if 1 < nk {
      cp.async a[1] <- A[m * 128 +: 128, 64 +: 64] by 16
      cp.async b[1] <- B[n * 256 +: 256, 64 +: 64] by 16
    }
    cp.async.commit
    cp.async.wait 1
    bar.sync 1 threads 256
    if 0 < nk {
      ldmatrix fa[0] <- a[0][:, 0 +: 16]
      ldmatrix fb[0] <- b[0][:, 0 +: 16]
    }
    for k in 0 .. nk {
      ldmatrix fa[1] <- a[k % 3][:, 16 +: 16]
      ldmatrix fb[1] <- b[k % 3][:, 16 +: 16]
      if k + 3 - 1 < nk {
        cp.async a[(k + 3 - 1) % 3] <- A[m * 128 +: 128, (k + 3 - 1) * 64 +: 64] by 16
        cp.async b[(k + 3 - 1) % 3] <- B[n * 256 +: 256, (k + 3 - 1) * 64 +: 64] by 16
      }
      cp.async.commit
      mma.sync acc += fa[0] @ fb[0].T
      ldmatrix fa[0] <- a[k % 3][:, 32 +: 16]
      ldmatrix fb[0] <- b[k % 3][:, 32 +: 16]
      mma.sync acc += fa[1] @ fb[1].T
      ldmatrix fa[1] <- a[k % 3][:, 48 +: 16]
      ldmatrix fb[1] <- b[k % 3][:, 48 +: 16]
      mma.sync acc += fa[0] @ fb[0].T
      cp.async.wait 1
      bar.sync 1 threads 256
      if k + 1 < nk {
        ldmatrix fa[0] <- a[(k + 1) % 3][:, 0 +: 16]
        ldmatrix fb[0] <- b[(k + 1) % 3][:, 0 +: 16]
      }
      mma.sync acc += fa[1] @ fb[1].T
    }
    cp.async.wait 0
    store D[m * 128 +: 128, n * 256 +: 256] <- bf16(acc) by 4
  }
}
