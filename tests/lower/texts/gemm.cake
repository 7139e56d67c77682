cake 1 derived
kernel gemm_sm90(M: i32, N: i32, K: i32, A: in bf16[M, K], B: in bf16[N, K], D: out bf16[M, N])
  require 1 <= M, M <= 4194304, 1 <= N, N <= 4194304, 0 <= K, K <= 16777216, N % 8 == 0, K % 8 == 0
  target sm90
  cluster m = 2
{
  let nk = ceildiv(K, 64)
  let t_m = ceildiv(ceildiv(M, 128), 2)
  let t_n = ceildiv(N, 256)
  launch t_m * t_n persistent
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
    var ab_f = 0
    for ti in cluster.id .. t_m * t_n step cluster.count {
      let ti_g = t_n * 8
      let ti_0 = ti / ti_g * 8
      let ti_h = min(t_m - ti_0, 8)
      let ti_r = ti % ti_g
      let ti_a = ti_0 + ti_r % ti_h
      let ti_b = ti_r / ti_h
      let m = ti_a * 2 + cluster.m
      let n = ti_b
      for k in 0 .. nk {
        mbarrier.wait ab_empty[ab_f % 4] parity (ab_f / 4 + 1) % 2
        if leader {
          mbarrier.expect ab_full[ab_f % 4] bytes 49152
        }
        if leader {
          tma.load a[ab_f % 4] <- A[m * 128 +: 128, k * 64 +: 64] signal ab_full[ab_f % 4]
        }
        if leader {
          tma.load b[ab_f % 4][128 * cluster.m +: 128, :] <- B[n * 256 + 128 * cluster.m +: 128, k * 64 +: 64] signal ab_full[ab_f % 4] mask 3
        }
        ab_f = ab_f + 1
      }
    }
  }
  role math[2]: 1 warpgroup at 4 regs 232 {
    var ab_c = 0
    var ab_g = 0
    frag acc: f32[64, 256] layout mma
    for ti in cluster.id .. t_m * t_n step cluster.count {
      let ti_g = t_n * 8
      let ti_0 = ti / ti_g * 8
      let ti_h = min(t_m - ti_0, 8)
      let ti_r = ti % ti_g
      let ti_a = ti_0 + ti_r % ti_h
      let ti_b = ti_r / ti_h
      let m = ti_a * 2 + cluster.m
      let n = ti_b
      acc = 0
      for k in 0 .. nk {
        mbarrier.wait ab_full[ab_c % 4] parity ab_c / 4 % 2
        wgmma.fence
        wgmma acc += a[ab_c % 4][64 * math.i +: 64, :] @ b[ab_c % 4].T
        wgmma.commit
        ab_c = ab_c + 1
        if k > 0 {
          wgmma.wait 1
          if leader {
            mbarrier.arrive ab_empty[ab_g % 4] at 0
            mbarrier.arrive ab_empty[ab_g % 4] at 1
          }
          ab_g = ab_g + 1
        }
      }
      wgmma.wait 0
      if ab_g < ab_c {
        if leader {
          mbarrier.arrive ab_empty[ab_g % 4] at 0
          mbarrier.arrive ab_empty[ab_g % 4] at 1
        }
        ab_g = ab_g + 1
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
      }
      if leader {
        tma.store.wait.read 1
      }
      bar.sync 1 + math.i threads 128
      store d[math.i][1] <- bf16(acc[:, 64 +: 64]) by stmatrix
      fence.proxy.async
      bar.sync 1 + math.i threads 128
      if leader {
        tma.store D[m * 128 + 64 * math.i +: 64, n * 256 + 64 +: 64] <- d[math.i][1]
        tma.store.commit
      }
      if leader {
        tma.store.wait.read 1
      }
      bar.sync 1 + math.i threads 128
      store d[math.i][0] <- bf16(acc[:, 128 +: 64]) by stmatrix
      fence.proxy.async
      bar.sync 1 + math.i threads 128
      if leader {
        tma.store D[m * 128 + 64 * math.i +: 64, n * 256 + 128 +: 64] <- d[math.i][0]
        tma.store.commit
      }
      if leader {
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
