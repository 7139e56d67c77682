cake 1
let x = 2
kernel k()
{
}
