cake 1
kernel k()
{
  role a: 1 warp {
    x = 1
    }
  }
  role b: 1 warp {
    x = 2
  }
}
