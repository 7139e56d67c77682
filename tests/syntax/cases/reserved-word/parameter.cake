cake 1
kernel k(from: i32)
{
}
