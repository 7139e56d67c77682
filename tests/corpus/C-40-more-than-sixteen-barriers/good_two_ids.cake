cake 1 derived
kernel two(R: i32, X: in f32[R, 256], Y: out f32[R, 256], Z: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm90
{
  launch R
  shared s: f32[4] at 0, u: f32[4] at 16
  role one: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    let r = cluster.id
    x = load(X[r, 0 +: 256], by = 8)
    store s[warp] <- warpsum(x) by 4
    bar.sync 1 threads 128
    store Y[r, 0 +: 256] <- x * sum(load(s, by = 4)) by 8
  }
  role two: 4 warps at 4 {
    frag x: f32[256] vec 2 layout vector
    let r = cluster.id
    x = load(X[r, 0 +: 256], by = 8)
    store u[warp] <- warpmax(x) by 4
    bar.sync 2 threads 128
    store Z[r, 0 +: 256] <- x * sum(load(u, by = 4)) by 8
  }
}
