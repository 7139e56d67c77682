cake 1
kernel k(N: i32)
  target sm100
{
  tmem acc: f32[8][128, 128]
  role main: 4 warps {
    sync main
  }
}
