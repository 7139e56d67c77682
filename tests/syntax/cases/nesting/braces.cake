cake 1
kernel k(M: i32)
{
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  group {
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }
  }

}
