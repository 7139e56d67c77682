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
#          other works on its exponentials. The product with V of one block runs while the next one's maximum is sought.
#
# sl2 is positive. V is taken to be finite: behind a sequence's end a block holds rows of the next one, whose probabilities are 0, and
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
  shared ob: bf16[2][64, 128]  # [math.i], 32 KB
  pipeline qp: 1 { q } from load to math
  pipeline kp: ST { k } from load to math
  pipeline vp: ST { v } from load to math
  turn order over math  # one token, first with instance 0

  role load: 1 warp regs 24 {
    for (b, r0, r1, h) in t {
      if nk > 0 {
        acquire qp as qs
        tma.load q[qs] <- Q[r0 +: BM, h, :]
        commit qp
      }
      for j in 0 .. nk {
        let c0 = CK[b] + (nk - 1 - j) * BN
        acquire kp as ks
        tma.load k[ks] <- K[c0 +: BN, hk, :]
        commit kp
        acquire vp as vs
        tma.load v[vs] <- V[c0 +: BN, hk, :]
        commit vp
      }
    }
  }

  role math[2]: 1 warpgroup regs 240 {
    frag qf: bf16[64, 128], s: f32[64, BN], p: bf16[64, BN], o: f32[64, 128]
    frag m: f32[64] over row, l: f32[64] over row part sum, al: f32[64] over row, mb: f32[64] over row

    inline mask(block) {
      if block >= nfull {
        let c = cols(s) + block * BN
        # Causal rows end before the keys do: what lies behind the last query is not stored.
        s = where((CAUSAL or c < lk) and (not CAUSAL or c <= rows(s) + q0 + 64 * math.i + off), s, -inf)
      }
    }

    # Exponentials, l and o are relative to m, the largest score of a row so far, or a little less. Raises m to `top`.
    inline raise(top) {
      mb = where(top == -inf, 0.0, top * sl2)  # so that a row without a key has no -inf - -inf
      al = exp2(m * sl2 - mb)  # rescales what was summed up before; 0 at the first block, where m is -inf
      l = l * al
      m = top
    }

    # s becomes the block's exponentials.
    inline exponentials() {
      s = exp2(s * sl2 - mb)
      l = l + fold(sum, s)  # a sum a lane; the lanes of a row are added once, at the end
    }

    for (b, r0, r1, h) in t {
      o = 0
      l = 0
      m = -inf
      if nk > 0 {
        wait kp as ks
        wait qp as qs
        qf = load(q[qs][64 * math.i +: 64, :])
        release qp  # at once: the next item's rows may be loaded
        take order
        wgmma s = qf @ k[ks].T
        pass order
        wgmma.wait 0
        release kp
        mask(nk - 1)
        let top = max(m, rowmax(s))
        raise(top)
        exponentials()
        p = bf16(s)
        for j in 1 .. nk {
          wait kp as ks
          take order
          wgmma s = qf @ k[ks].T
          wait vp as vs
          wgmma o += p @ v[vs]  # of the block before; p and o are in flight from here
          pass order
          wgmma.wait 1  # s is there
          release kp
          mask(nk - 1 - j)
          # Where no row of the warp outgrew its m by more than 2^8, exponentials up to that are as exact, and o stays as it is.
          let top = max(m, rowmax(s)), grown = vote.any((top - m) * sl2 > 8.0)
          if grown {
            raise(top)
          }
          exponentials()
          wgmma.wait 0  # o and p are free
          release vp
          p = bf16(s)
          if grown {
            o = o * al
          }
        }
        wait vp as vs
        wgmma o += p @ v[vs]
        wgmma.wait 0
        release vp
      }
      let ls = rowsum(l), scale = where(ls > 0.0, rcp(ls), 0.0)
      if r1 - r0 >= BM {
        tma.store.wait.read 0  # of the leader: the item before has left `ob` ...
        sync math  # ... and every warp of this instance knows it
        store ob[math.i] <- bf16(o * scale)
        sync math  # each writer's fence towards the asynchronous proxy is derived here
        tma.store O[r0 + 64 * math.i +: 64, h, :] <- ob[math.i]
      } else {
        # Not by bulk copies: the item's rows end at r1, and the tensor goes on.
        store O[r0 + 64 * math.i +: 64, h, :] <- bf16(o * scale) clip r1
      }
      store LSE[h, r0 + 64 * math.i +: 64] <- where(ls > 0.0, m * sl2 * 0.6931472 + log(ls), -inf) clip r1
    }
    tma.store.wait.read 0  # nothing may read shared memory after exit
  }
}
