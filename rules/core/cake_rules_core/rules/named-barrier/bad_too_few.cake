cake 1 derived
kernel k(N: i32)
  target sm90
{
  launch 1
  role a: 4 warps at 0 {
    bar.sync 1 threads 64
  }
  role b: 2 warps at 4 {
    bar.sync 2 threads 64
  }
}
