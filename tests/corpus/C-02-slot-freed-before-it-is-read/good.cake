cake 1 derived
kernel on_demand(T: i32, C: i32, R: i32, NEXT: inout i32[1], X: in f32[R, 256], Y: out f32[C, T, 256])
  require 1 <= T, T <= 65536, 1 <= C, C <= 1024, 1 <= R, R <= 65536
  target sm100
{
  let t_c = C
  let t_total = t_c
  launch t_total
  shared q: i32[2][1] at 0
  barrier p_full: mbarrier[2] count 1 at 8
  barrier p_empty: mbarrier[2] count 4 at 24
  if leader {
    mbarrier.init p_full
    mbarrier.init p_empty
    fence.mbarrier_init
  }
  cta.sync
  role sched: 1 warp at 0 {
    var p_fill = 0
    var p_commit = 0
    let t_i = cluster.id
    let c = t_i
    for j in 0 .. T {
      let i = p_fill % 2
      mbarrier.wait p_empty[i] parity (p_fill / 2 + 1) % 2
      p_fill = p_fill + 1
      let item = atomic.add(NEXT[0], 1)
      store q[i][0] <- item by 4
      warp.sync
      if warp.leader {
        mbarrier.arrive p_full[p_commit % 2]
      }
      p_commit = p_commit + 1
      if item == T * C - 1 {
        store NEXT[0] <- 0 by 4
      }
    }
  }
  role work: 4 warps at 1 {
    var p_wait = 0
    var p_release = 0
    frag x: f32[256] vec 2 layout vector
    let t_i = cluster.id
    let c = t_i
    for j in 0 .. T {
      let i = p_wait % 2
      mbarrier.wait p_full[i] parity p_wait / 2 % 2
      p_wait = p_wait + 1
      let item = load(q[i][0], by = 4)
      warp.sync
      if warp.leader {
        mbarrier.arrive p_empty[p_release % 2]
      }
      p_release = p_release + 1
      if item >= 0 and item < R {
        x = load(X[item, 0 +: 256], by = 8)
        store Y[c, j, 0 +: 256] <- x * 2.0 by 8
      }
    }
  }
}
