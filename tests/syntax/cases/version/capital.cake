Cake 1
kernel k()
{
}
