cake 1 derived
kernel gemm_sm90(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  target sm90
  cluster m = 2
{
  let nk = ceildiv(K, 64)
  let t_m = ceildiv(ceildiv(M, 128), 2), t_n = ceildiv(N, 256)
  let t_total = t_m * t_n
  launch t_total persistent
  shared a: bf16[4][128, 64] at 0 swizzle 128
  shared b: bf16[4][256, 64] at 65536 swizzle 128
  shared d: bf16[2][2][64, 64] at 196608 swizzle 128
  barrier ab_full: mbarrier[4] count 1 at 229376
  barrier ab_empty: mbarrier[4] count 4 at 229408
  if leader {
    mbarrier.init ab_full
    mbarrier.init ab_empty
    fence.mbarrier_init
  }
  cluster.sync
  role load: 1 warp at 0 regs 40 pad 3 {
    var ab_fill = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let t_group = t_n * 8
      let t_start = t_i / t_group * 8
      let t_height = clamp(t_m - t_start, 1, 8)
      let t_inside = t_i % t_group
      let m = (t_start + t_inside % t_height) * 2 + cluster.m, n = t_inside / t_height
      ab_fill = 0
      for k in 0 .. nk {
        let s = ab_fill % 4
        mbarrier.wait ab_empty[s] parity (ab_fill / 4 + 1) % 2
        ab_fill = ab_fill + 1
        if leader {
          mbarrier.expect ab_full[s] bytes 49152
          tma.load a[s] <- A[m * 128 +: 128, k * 64 +: 64] signal ab_full[s]
          tma.load b[s][128 * cluster.m +: 128, :] <- B[n * 256 + 128 * cluster.m +: 128, k * 64 +: 64] signal ab_full[s] mask 3
        }
      }
    }
  }
  role math[2]: 1 warpgroup at 4 regs 232 {
    var ab_wait = 0
    var ab_release = 0
    frag acc: f32[64, 256] layout mma
    for t_i in cluster.id .. t_total step cluster.count {
      let t_group = t_n * 8
      let t_start = t_i / t_group * 8
      let t_height = clamp(t_m - t_start, 1, 8)
      let t_inside = t_i % t_group
      let m = (t_start + t_inside % t_height) * 2 + cluster.m, n = t_inside / t_height
      acc = 0.0
      for k in 0 .. nk {
        let s = ab_wait % 4
        mbarrier.wait ab_full[s] parity ab_wait / 4 % 2
        ab_wait = ab_wait + 1
        wgmma.fence
        wgmma acc += a[s][64 * math.i +: 64, :] @ b[s].T
        wgmma.commit
        if k > 0 {
          wgmma.wait 1
          if leader {
            mbarrier.arrive ab_empty[ab_release % 4] at 0
            mbarrier.arrive ab_empty[ab_release % 4] at 1
          }
          ab_release = ab_release + 1
        }
      }
      wgmma.wait 0
      if ab_release < ab_wait {
        if leader {
          mbarrier.arrive ab_empty[ab_release % 4] at 0
          mbarrier.arrive ab_empty[ab_release % 4] at 1
        }
        ab_release = ab_release + 1
      }
      if leader {
        tma.store.wait.read 1
      }
      bar.sync 1 + math.i threads 128
      store d[math.i][0] <- bf16(acc[:, 0 +: 64]) by stmatrix
      fence.proxy.async
      bar.sync 1 + math.i threads 128
      if leader {
        tma.store D[m * 128 + 64 * math.i +: 64, n * 256 +: 64] <- d[math.i][0]
        tma.store.commit
        tma.store.wait.read 1
      }
      bar.sync 1 + math.i threads 128
      store d[math.i][1] <- bf16(acc[:, 64 +: 64]) by stmatrix
      fence.proxy.async
      bar.sync 1 + math.i threads 128
      if leader {
        tma.store D[m * 128 + 64 * math.i +: 64, n * 256 + 64 +: 64] <- d[math.i][1]
        tma.store.commit
        tma.store.wait.read 1
      }
      bar.sync 1 + math.i threads 128
      store d[math.i][0] <- bf16(acc[:, 128 +: 64]) by stmatrix
      fence.proxy.async
      bar.sync 1 + math.i threads 128
      if leader {
        tma.store D[m * 128 + 64 * math.i +: 64, n * 256 + 128 +: 64] <- d[math.i][0]
        tma.store.commit
        tma.store.wait.read 1
      }
      bar.sync 1 + math.i threads 128
      store d[math.i][1] <- bf16(acc[:, 192 +: 64]) by stmatrix
      fence.proxy.async
      bar.sync 1 + math.i threads 128
      if leader {
        tma.store D[m * 128 + 64 * math.i +: 64, n * 256 + 192 +: 64] <- d[math.i][1]
        tma.store.commit
      }
    }
    if leader {
      tma.store.wait.read 0
    }
  }
  cluster.sync
}
