cake 1
