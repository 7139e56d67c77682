cake 1
kernel k(N: i32)
  target sm100
{
  tmem acc: f32[2][128, 256], p: f32[128, 64]
  role main: 4 warps {
    sync main
  }
}
