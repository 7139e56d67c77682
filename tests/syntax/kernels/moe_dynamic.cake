cake 1
kernel moe_dynamic()
{
  shared item: i32[2][4]
  pipeline tp: 2 { item } from sched to load, math          # every instance of every named role consumes every slot
  role sched: 1 warp {
    var go = true
    while go max ceildiv(T, BM) + E {                         # S10e: `while` on a role-uniform var; opaque trip symbol NT
      acquire tp as s
      let w = atomic.add(CTR, 1)                            # leader, broadcast to the warp
      store item[s] <- decode(w)                            # item[s][0] = -1 when there is no more work: a sentinel item
      commit tp
      go = valid(w)
    }
  }
  # in load and math:  `for (...) in t` is  { var go = true; while go { wait tp as s; let it = load(item[s]); release tp; go = it[0] >= 0; if go { body } } }
}
