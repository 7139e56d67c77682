cake 1
kernel k(N: i32)
  target sm100
{
  tmem acc: f32[128, 1024]
  role main: 4 warps {
    sync main
  }
}
