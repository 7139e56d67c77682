cake 1
# größe
