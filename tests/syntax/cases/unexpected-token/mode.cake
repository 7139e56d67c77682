cake 1
kernel k(A: inn f32[2])
{
}
