cake 1 derived
kernel groups(R: i32, G: in i32[1], X: in f32[R, 256], Y: out f32[R, 256], Z: out f32[R, 256])
  require 1 <= R, R <= 65536
  target sm100
{
  launch R
  role load: 4 warps at 0 {
    frag x: f32[256] vec 2 layout vector
    bar.sync 1 threads 256
    grid.wait
    let n = load(G[0], by = 4), r = cluster.id
    x = load(X[r, 0 +: 256], by = 8)
    store Y[r, 0 +: 256] <- x * f32(n) by 8
  }
  role epi: 4 warps at 4 {
    frag y: f32[256] vec 2 layout vector
    bar.sync 1 threads 256
    let n = load(G[0], by = 4), r = cluster.id
    y = 1.0
    store Z[r, 0 +: 256] <- y * f32(n) by 8
  }
}
