cake 2
kernel k() $ never read
