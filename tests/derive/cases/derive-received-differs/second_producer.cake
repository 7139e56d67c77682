cake 1
kernel uneven(R: i32, Y: out i32[R])
  require 1 <= R, R <= 65536
  target sm90
{
  tiles t = persistent(r: R)
  shared n: i32[2][1], x: i32[2][1], c: i32[2][1]
  pipeline q: 2 { c } from first to a, b, show
  pipeline p: 2 { n, x } from a, b to show
  role first: 1 warp {
    for r in t {
      acquire q as s
      store c[s][0] <- r % 4
      commit q
    }
  }
  role a: 1 warp {
    for r in t {
      wait q as u
      let many = load(c[u][0])
      release q
      for i in 0 .. many {
        acquire p as s
        store n[s][0] <- i
        commit p
      }
    }
  }
  role b: 1 warp {
    for r in t {
      wait q as u
      let many = load(c[u][0])
      release q
      for i in 0 .. many + 1 {
        acquire p as s
        store x[s][0] <- i
        commit p
      }
    }
  }
  role show: 1 warp {
    for r in t {
      wait q as u
      let many = load(c[u][0])
      release q
      for i in 0 .. many {
        wait p as s
        store Y[r] <- load(n[s][0]) + load(x[s][0])
        release p
      }
    }
  }
}
