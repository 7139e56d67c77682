cake 1 explained
kernel k()
{
}
