# Nearest neighbours by brute force, second of two kernels: one list a query of the lists that knn_part_sm90 leaves.
#
#   V and I [SPLIT, Q, KK] keys and indices; VO and IO [Q, KK] the KK first of a query's SPLIT * KK entries, by key and then
#   by index. NaN and +inf are never taken; where there are fewer than KK entries the list ends in (+inf, -1).
#
# A warp a query. Its entries are dealt out to the lanes; each lane makes a list of its own, and a butterfly merges them.

cake 1
kernel knn_merge(Q: i32, V: in f32[SPLIT, Q, KK], I: in i32[SPLIT, Q, KK], VO: out f32[Q, KK], IO: out i32[Q, KK])
  const KK = 10, SPLIT = 4, WARPS = 8
  require 1 <= Q, Q <= 1048576  # indices are i32 and may not overflow
  target sm80, sm90, sm100
{
  tiles t = grid(g: ceildiv(Q, WARPS))

  role main[WARPS]: 1 warp {
    frag best: topk(KK, f32, i32)[1] over row part
    for g in t {
      let r = g * WARPS + main.i
      if r < Q {
        best = empty
        best = fold(topk, best, load(V[0 +: SPLIT, r, 0 +: KK], flat = true),
                    load(I[0 +: SPLIT, r, 0 +: KK], flat = true))
        let top = merge(best)
        store VO[r +: 1, :] <- top.key
        store IO[r +: 1, :] <- top.val
      }
    }
  }
}
