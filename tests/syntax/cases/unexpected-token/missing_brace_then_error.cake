cake 1
kernel k(M: i32)
{
  for k in 0 .. 3
    x = 1 +
  }
  let y = 2
}
