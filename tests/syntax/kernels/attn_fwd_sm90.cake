cake 1
kernel attn_fwd_sm90(B: i32, H: i32, HK: i32, TQ: i32, TK: i32, sl2: f32,          # sl2 = scale * log2(e)
                     CQ: in i32[B + 1], CK: in i32[B + 1],
                     Q: in bf16[TQ, H, 128], K: in bf16[TK, HK, 128], V: in bf16[TK, HK, 128],
                     O: out bf16[TQ, H, 128], LSE: out f32[H, TQ])
  const BM = 128, BN = 128, ST = 2, CAUSAL = true
  require B >= 0, HK >= 1, H % HK == 0
  assume CQ[0] == 0, CQ[B] == TQ, CK[B] == TK, monotone(CQ), monotone(CK)    # S11: data contract, used by proofs, checkable on the device
  target sm90
{
  tiles t = ragged(rows: CQ, block = BM) * grid(h: H) order balanced(nk, section = 8) {    # item: b, r0 (global row), r1 = CQ[b+1], h
    let lq = CQ[b+1] - CQ[b], lk = CK[b+1] - CK[b], off = lk - lq             # S9: one value an item, the same in every role
    let q0 = r0 - CQ[b]
    let hi = CAUSAL ? clamp(min(q0 + BM, lq) + off, 0, lk) : lk
    let nk = ceildiv(hi, BN)                                                    # 0 for empty rows
    let nfull = CAUSAL ? clamp((q0 + off + 1) / BN, 0, lk / BN) : lk / BN     # kv blocks that need no mask for any row
    let hk = h / (H / HK)
  }
  shared q: bf16[1][BM, 128]                     # 32 KB
  shared k: bf16[ST][BN, 128], v: bf16[ST][BN, 128]    # 64 + 64 KB
  pipeline qp: 1 { q } from load to math
  pipeline kp: ST { k } from load to math
  pipeline vp: ST { v } from load to math
  turn order over math                           # S8: one token, first with instance 0; two named barriers, ids chosen by the compiler

  role load: 1 warp regs 24 {
    for (b, r0, r1, h) in t {
      if nk > 0 {                                # S10c: a guard of the item: every role of qp, kp, vp must have the same one
        acquire qp as s;  tma.load q[s] <- Q[r0 +: BM, h, :];  commit qp
        for j in 0 .. nk {
          let c0 = CK[b] + (nk - 1 - j) * BN
          acquire kp as s;  tma.load k[s] <- K[c0 +: BN, hk, :];  commit kp
          acquire vp as s;  tma.load v[s] <- V[c0 +: BN, hk, :];  commit vp
        }
      }
    }
  }

  role math[2]: 1 warpgroup regs 240 {
    frag s: f32[64, BN], p: bf16[64, BN], o: f32[64, 128]
    frag m: f32[64] over row, l: f32[64] over row part sum, al: f32[64] over row, mb: f32[64] over row
    inline mask(blk) {                           # S22: no pipeline verb inside
      if blk >= nfull {
        let c = cols(s) + blk * BN
        s = where(c < lk and (not CAUSAL or c <= rows(s) + q0 + 64*math.i + off), s, -inf)
      }
    }
    inline softmax() {                           # s -> exp2, m, l, al
      let mn = max(m, rowmax(s))
      mb = where(mn == -inf, 0, mn * sl2)        # no -inf - -inf
      al = exp2(m * sl2 - mb)                    # 0 at the first block, since m is -inf
      s = exp2(s * sl2 - mb)
      l = l * al + fold(sum, s)                  # S6: lane-partial, reduced once at the end
      m = mn
    }
    for (b, r0, r1, h) in t {
      o = 0; l = 0; m = -inf
      if nk > 0 {
        wait qp as qs
        wait kp as ks
        take order
        wgmma s = q[qs][64*math.i +: 64, :] @ k[ks].T
        pass order
        wgmma.wait 0
        release kp
        mask(nk - 1); softmax(); p = bf16(s)
        for j in 1 .. nk {
          wait kp as ks
          take order
          wgmma s = q[qs][64*math.i +: 64, :] @ k[ks].T      # group S_j
          wait vp as vs
          wgmma o += p @ v[vs]                               # group PV_{j-1}; p and o are in flight from here (S7)
          pass order
          wgmma.wait 1                                       # S_j done
          release kp
          mask(nk - 1 - j); softmax()                        # touches s, m, l, al only
          wgmma.wait 0                                       # PV_{j-1} done: o and p are free
          release vp
          o = o * al; p = bf16(s)
        }
        release qp                                           # q's last reader has retired: the next item's loads may start
        wait vp as vs
        wgmma o += p @ v[vs]
        wgmma.wait 0
        release vp
      }
      let ls = rowsum(l)
      store O[r0 + 64*math.i +: 64, h, :] <- bf16(o * where(ls > 0, 1 / ls, 0)) clip r1   # S12: tighter than TQ, so not a TMA store
      store LSE[h, r0 + 64*math.i +: 64] <- where(ls > 0, m * sl2 * 0.6931472 + log(ls), -inf) clip r1
    }
  }
}
