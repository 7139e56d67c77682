# Attention forward for Hopper: O = softmax(Q K^T * scale) V, head dimension 128, bf16 inputs, f32 sums.
#
# Packed variable lengths: sequence b has the query rows CQ[b] .. CQ[b + 1] and the key rows CK[b] .. CK[b + 1]; either
# may be empty. H query heads share HK key heads. CAUSAL masks keys behind the query, the ends of both being aligned:
# query i of lq sees keys up to i + lk - lq. A query that sees no key gives O = 0 and LSE = -inf. LSE is the natural
# logarithm of the sum of exponentials.
#
# Who does what:
#   load   one warp fills rings of K and V blocks by bulk tensor copies, from the last block of an item to the first,
#          so that the blocks that need a mask come first.
#   math   two warpgroups, 64 query rows of an item each. They take turns: while one has its products queued, the
#          other works on its exponentials. The product with V of one block runs during the softmax of the next.
#
# V is taken to be finite: behind a sequence's end a block holds rows of the next one, whose probabilities are 0, and
# 0 * inf is a NaN. Rows past the whole tensor are zeros.

cake 1
kernel attn_fwd_sm90(B: i32, H: i32, HK: i32, TQ: i32, TK: i32, sl2: f32,  # sl2 = scale * log2(e)
                     CQ: in i32[B + 1], CK: in i32[B + 1], Q: in bf16[TQ, H, 128], K: in bf16[TK, HK, 128],
                     V: in bf16[TK, HK, 128], O: out bf16[TQ, H, 128], LSE: out f32[H, TQ])
  const BM = 128, BN = 128, ST = 2, CAUSAL = true
  # Upper bounds: indices are i32 and may not overflow.
  require 0 <= B, B <= 65536, 1 <= H, H <= 1024, 1 <= HK, HK <= 1024, H % HK == 0, 0 <= TQ, TQ <= 4194304, 0 <= TK, TK <= 4194304
  assume CQ[0] == 0, CQ[B] == TQ, CK[0] == 0, CK[B] == TK, monotone(CQ), monotone(CK), finite(V)
  target sm90
{
  # The host makes a table of the items, so that every CTA gets about the same number of key blocks, and heads that
  # share keys and values are worked on at one time.
  tiles t = ragged(rows: CQ, block = BM) * grid(h: H) order balanced(2 * nk + 3, section = 8) {
    let lq = CQ[b + 1] - CQ[b], lk = CK[b + 1] - CK[b], off = lk - lq
    let q0 = r0 - CQ[b]
    let hi = CAUSAL ? clamp(min(q0 + BM, lq) + off, 0, lk) : lk  # keys that some row of the item sees
    let nk = ceildiv(hi, BN)  # blocks of them; 0 for an item that sees none
    let nfull = CAUSAL ? clamp((q0 + off + 1) / BN, 0, lk / BN) : lk / BN  # blocks that every row sees whole
    let hk = h / (H / HK)
  }

  shared q: bf16[1][BM, 128]  # 32 KB
  shared k: bf16[ST][BN, 128], v: bf16[ST][BN, 128]  # 64 + 64 KB
  pipeline qp: 1 { q } from load to math
  pipeline kp: ST { k } from load to math
  pipeline vp: ST { v } from load to math
  turn order over math  # one token, first with instance 0

  role load: 1 warp regs 24 {
    for (b, r0, r1, h) in t {
      for j in 0 .. nk {
        let c0 = CK[b] + (nk - 1 - j) * BN
        acquire kp as ks
        tma.load k[ks] <- K[c0 +: BN, hk, :]
        commit kp
        if j < 1 {
          # Behind the first keys: q is given back late, and those need not wait for it.
          acquire qp as qs
          tma.load q[qs] <- Q[r0 +: BM, h, :]
          commit qp
        }
        acquire vp as vs
        tma.load v[vs] <- V[c0 +: BN, hk, :]
        commit vp
      }
    }
  }

  role math[2]: 1 warpgroup regs 240 {
    frag s: f32[64, BN], p: bf16[64, BN], o: f32[64, 128]
    frag m: f32[64] over row, l: f32[64] over row part sum, al: f32[64] over row, mb: f32[64] over row

    inline mask(block) {
      if block >= nfull {
        let c = cols(s) + block * BN
        # Causal rows end before the keys do: what lies behind the last query is not stored.
        s = where((CAUSAL or c < lk) and (not CAUSAL or c <= rows(s) + q0 + 64 * math.i + off), s, -inf)
      }
    }

    # s becomes the block's exponentials; al rescales what was summed up before.
    inline softmax() {
      let mn = max(m, rowmax(s))
      mb = where(mn == -inf, 0.0, mn * sl2)  # so that a row without a key has no -inf - -inf
      al = exp2(m * sl2 - mb)  # 0 at the first block, where m is -inf
      s = exp2(s * sl2 - mb)
      l = l * al + fold(sum, s)  # a sum a lane; the lanes of a row are added once, at the end
      m = mn
    }

    for (b, r0, r1, h) in t {
      o = 0
      l = 0
      m = -inf
      if nk > 0 {
        wait kp as ks
        wait qp as qs
        take order
        wgmma s = q[qs][64 * math.i +: 64, :] @ k[ks].T
        pass order
        wgmma.wait 0
        release kp
        mask(nk - 1)
        softmax()
        p = bf16(s)
        for j in 1 .. nk {
          wait kp as ks
          take order
          wgmma s = q[qs][64 * math.i +: 64, :] @ k[ks].T
          wait vp as vs
          wgmma o += p @ v[vs]  # of the block before; p and o are in flight from here
          pass order
          wgmma.wait 1  # s is there
          release kp
          mask(nk - 1 - j)
          softmax()  # touches s, m, l, al and mb only
          wgmma.wait 0  # o and p are free
          release vp
          o = o * al
          p = bf16(s)
        }
        release qp  # its last reader has retired: the next item's rows may be loaded
        wait vp as vs
        wgmma o += p @ v[vs]
        wgmma.wait 0
        release vp
      }
      let ls = rowsum(l)
      # Not by bulk copies: an item's rows end at r1, and the tensor goes on.
      store O[r0 + 64 * math.i +: 64, h, :] <- bf16(o * where(ls > 0.0, rcp(ls), 0.0)) clip r1
      store LSE[h, r0 + 64 * math.i +: 64] <- where(ls > 0.0, m * sl2 * 0.6931472 + log(ls), -inf) clip r1
    }
  }
}
