cake 1 derived
kernel k()
  target sm90
{
  launch 1
  shared s: f32[32] at 0
  role a: 1 warp at 0 {
    frag x: f32[32] vec 1 layout vector
    x = 1.0
    store s <- x by 4
    x = load(s, by = 4)
  }
}
