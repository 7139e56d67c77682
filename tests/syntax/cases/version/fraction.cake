cake 1.5
kernel k()
{
}
