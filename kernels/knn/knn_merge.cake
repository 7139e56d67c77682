cake 1
kernel knn_merge(Q: i32, V: in f32[SPLIT, Q, KK], I: in i32[SPLIT, Q, KK], VO: out f32[Q, KK], IO: out i32[Q, KK])
  const KK = 10, SPLIT = 4, WARPS = 8
  require 1 <= Q, Q <= 1048576
  target sm80, sm90, sm100
{
  tiles t = grid(g: ceildiv(Q, WARPS))
  role main[WARPS]: 1 warp { # an instance a query
    frag best: topk(KK, f32, i32)[1] over row part
    for g in t {
      let r = g * WARPS + main.i
      if r < Q {
        best = empty
        best = fold(topk, best, load(V[0 +: SPLIT, r, 0 +: KK], flat = true), load(I[0 +: SPLIT, r, 0 +: KK], flat = true))
        let top = merge(best)
        store VO[r +: 1, :] <- top.key
        store IO[r +: 1, :] <- top.val
      }
    }
  }
}
