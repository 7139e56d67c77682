cake 1
kernel k(M: i32)
{
  tma.load a[s] <- A[m +: 4, k +: 4
  commit ab
}
