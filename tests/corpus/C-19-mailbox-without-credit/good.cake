cake 1 derived
kernel mailbox(T: i32, C: i32, R: i32, Q: in i32[C, T, 4], X: in f32[R, 256], Y: out f32[C, T, 256])
  require 1 <= T, T <= 65536, 1 <= C, C <= 1024, 1 <= R, R <= 65536
  target sm100
{
  let t_c = C
  let t_total = t_c
  launch t_total
  shared q: i32[1][4] at 0
  barrier p_full: mbarrier[1] count 1 at 16
  barrier p_empty: mbarrier[1] count 4 at 24
  if leader {
    mbarrier.init p_full
    mbarrier.init p_empty
    fence.mbarrier_init
  }
  cta.sync
  role sched: 1 warp at 0 {
    var p_fill = 0
    let t_i = cluster.id
    let c = t_i
    for j in 0 .. T {
      let i = 0
      mbarrier.wait p_empty[i] parity (p_fill + 1) % 2
      p_fill = p_fill + 1
      if leader {
        mbarrier.expect p_full[i] bytes 16
        bulk.load q[i] <- Q[c, j, 0 +: 4] signal p_full[i] exact
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
      let i = 0
      mbarrier.wait p_full[i] parity p_wait % 2
      p_wait = p_wait + 1
      let row = load(q[i][0], by = 4), scale = load(q[i][1], by = 4), valid = load(q[i][2], by = 4)
      fence.proxy.async
      warp.sync
      if warp.leader {
        mbarrier.arrive p_empty[0]
      }
      p_release = p_release + 1
      if valid > 0 and row >= 0 and row < R {
        x = load(X[row, 0 +: 256], by = 8)
        store Y[c, j, 0 +: 256] <- x * f32(scale) by 8
      }
    }
  }
}
