cake 1 derived
kernel attn(R: i32, T: i32, CK: in i32[R + 1], Q: in bf16[R, 64, 64], K: in bf16[T, 64], V: in bf16[T, 64],
            O: out f32[R, 64, 64])
  require 1 <= R, R <= 65536, 1 <= T, T <= 65536
  assume CK[0] == 0, CK[R] == T, monotone(CK), finite(V)
  target sm90
{
  let t_r = R
  let t_total = t_r
  launch t_total persistent
  shared q: bf16[1][64, 64] at 0 swizzle 128, k: bf16[2][64, 64] at 8192 swizzle 128, v: bf16[2][64, 64] at 24576 swizzle 128
  barrier qp_full: mbarrier[1] count 1 at 40960
  barrier qp_empty: mbarrier[1] count 1 at 40968
  barrier kp_full: mbarrier[2] count 1 at 40976
  barrier kp_empty: mbarrier[2] count 1 at 40992
  barrier vp_full: mbarrier[2] count 1 at 41008
  barrier vp_empty: mbarrier[2] count 1 at 41024
  if leader {
    mbarrier.init qp_full
    mbarrier.init qp_empty
    mbarrier.init kp_full
    mbarrier.init kp_empty
    mbarrier.init vp_full
    mbarrier.init vp_empty
    fence.mbarrier_init
  }
  cta.sync
  role load: 1 warp at 0 {
    var qp_fill = 0
    var kp_fill = 0
    var vp_fill = 0
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      let n = ceildiv(load(CK[r + 1], by = 4) - load(CK[r], by = 4), 64)
      if n > 0 {
        let a = 0
        mbarrier.wait qp_empty[a] parity (qp_fill + 1) % 2
        qp_fill = qp_fill + 1
        if leader {
          mbarrier.expect qp_full[a] bytes 8192
          tma.load q[a] <- Q[r, 0 +: 64, 0 +: 64] signal qp_full[a]
        }
        for j in 0 .. n {
          let b = kp_fill % 2
          mbarrier.wait kp_empty[b] parity (kp_fill / 2 + 1) % 2
          kp_fill = kp_fill + 1
          if leader {
            mbarrier.expect kp_full[b] bytes 8192
            tma.load k[b] <- K[load(CK[r], by = 4) + j * 64 +: 64, 0 +: 64] signal kp_full[b]
          }
          let c = vp_fill % 2
          mbarrier.wait vp_empty[c] parity (vp_fill / 2 + 1) % 2
          vp_fill = vp_fill + 1
          if leader {
            mbarrier.expect vp_full[c] bytes 8192
            tma.load v[c] <- V[load(CK[r], by = 4) + j * 64 +: 64, 0 +: 64] signal vp_full[c]
          }
        }
      }
    }
  }
  role math: 1 warpgroup at 4 {
    var qp_wait = 0
    var qp_release = 0
    var kp_wait = 0
    var kp_release = 0
    var vp_wait = 0
    var vp_release = 0
    frag s: f32[64, 64] layout mma, p: bf16[64, 64] layout mma, o: f32[64, 64] layout mma
    for t_i in cluster.id .. t_total step cluster.count {
      let r = t_i
      let rows = load(CK[r + 1], by = 4) - load(CK[r], by = 4)
      let n = ceildiv(rows, 64)
      o = 0.0
      if n > 0 {
        let a = 0
        mbarrier.wait qp_full[a] parity qp_wait % 2
        qp_wait = qp_wait + 1
        for j in 0 .. n {
          let b = kp_wait % 2
          mbarrier.wait kp_full[b] parity kp_wait / 2 % 2
          kp_wait = kp_wait + 1
          wgmma.fence
          wgmma s = q[a] @ k[b].T
          wgmma.commit
          wgmma.wait 0
          if leader {
            mbarrier.arrive kp_empty[kp_release % 2]
          }
          kp_release = kp_release + 1
          s = where(cols(s) + j * 64 < rows, s, -inf)
          p = bf16(exp2(s))
          let c = vp_wait % 2
          mbarrier.wait vp_full[c] parity vp_wait / 2 % 2
          vp_wait = vp_wait + 1
          if leader {
            mbarrier.arrive vp_empty[vp_release % 2]
          }
          wgmma.fence
          wgmma o += p @ v[c]
          wgmma.commit
          wgmma.wait 0
          vp_release = vp_release + 1
        }
        if leader {
          mbarrier.arrive qp_empty[0]
        }
        qp_release = qp_release + 1
      }
      store O[r, 0 +: 64, 0 +: 64] <- o by 8
    }
  }
}
