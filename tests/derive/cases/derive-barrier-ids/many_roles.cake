cake 1
kernel k(N: i32)
  target sm90
{
  role r0: 2 warps { sync r0 }
  role r1: 2 warps { sync r1 }
  role r2: 2 warps { sync r2 }
  role r3: 2 warps { sync r3 }
  role r4: 2 warps { sync r4 }
  role r5: 2 warps { sync r5 }
  role r6: 2 warps { sync r6 }
  role r7: 2 warps { sync r7 }
  role r8: 2 warps { sync r8 }
  role r9: 2 warps { sync r9 }
  role r10: 2 warps { sync r10 }
  role r11: 2 warps { sync r11 }
  role r12: 2 warps { sync r12 }
  role r13: 2 warps { sync r13 }
  role r14: 2 warps { sync r14 }
  role r15: 2 warps { sync r15 }
}
