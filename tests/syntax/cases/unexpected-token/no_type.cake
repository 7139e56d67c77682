cake 1
kernel k(A: , B: f32)
{
}
