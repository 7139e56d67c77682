cake 1 derived
kernel derived()
{
  shared a: bf16[4][128, 64] at 0 swizzle 128
  shared b: bf16[4][256, 64] at 65536 swizzle 128
  shared d: bf16[2][2][64, 64] at 196608 swizzle 128
  barrier full: mbarrier[4] count 1 at 229376
  barrier empty: mbarrier[4] count 4 at 229408          # two warpgroups in each of two CTAs

  role load: 1 warp at 0 regs 40 pad 3 {
    var f = 0                                           # ordinal of the next fill: slot f % 4, phase f / 4
    for (m, n) in t {
      for k in 0 .. nk {
        mbarrier.wait empty[f % 4] parity (f / 4 + 1) % 2
        if leader {
          mbarrier.expect full[f % 4] bytes 49152
          tma.load a[f % 4] <- A[m*128 +: 128, k*64 +: 64] signal full[f % 4]
          tma.load b[f % 4][128*cluster.m +: 128, :] <- B[n*256 + 128*cluster.m +: 128, k*64 +: 64] signal full[f % 4] mask 3
        }
        f = f + 1
      }
    }
  }

  role math[2]: 1 warpgroup at 4 regs 232 {
    var c = 0                                           # ordinal of the next wait
    var g = 0                                           # ordinal of the next release
    for (m, n) in t {
      for k in 0 .. nk {
        let s = c % 4                                   # a slot is named once: the cursor moves while it is still held
        mbarrier.wait full[s] parity (c / 4) % 2
        wgmma.fence
        wgmma acc += a[s][64*math.i +: 64, :] @ b[s].T
        wgmma.commit
        if k > 0 {
          wgmma.wait 1
          if leader { mbarrier.arrive empty[g % 4] at 0; mbarrier.arrive empty[g % 4] at 1 }
          g = g + 1
        }
        c = c + 1
      }
      wgmma.wait 0
      while g < c { if leader { mbarrier.arrive empty[g % 4] at 0; mbarrier.arrive empty[g % 4] at 1 }; g = g + 1 }     # drain
      store d[math.i][0] <- bf16(acc[:, 0 +: 64])
      fence.proxy.async
      bar.sync 1 + math.i threads 128                   # the lowering specialises the code per instance: a register id would reserve all 16
      if leader { tma.store D[m*128 + 64*math.i +: 64, n*256 +: 64] <- d[math.i][0]; tma.store.commit }
    }
  }
}
