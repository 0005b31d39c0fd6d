/*
 * Writes that reach the memory of several devices, at addresses of multicast, which nothing else may
 * use. There are such instructions from compute capability 9.0 on.
 */
#ifndef WEFT_MULTIMEM_H
#define WEFT_MULTIMEM_H

#include "system.h"

#ifdef __CUDACC__

/* The floats are bits that nobody looks at: it is the widest form there is. */
INLINE void store_to_all(wide *address, wide value) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address),
               "f"(__uint_as_float(value.x)), "f"(__uint_as_float(value.y)),
               "f"(__uint_as_float(value.z)), "f"(__uint_as_float(value.w))
               : "memory");
}

/* What was written at one address of some memory is seen at its others, by all devices. */
INLINE void settle_aliases(void) {
  asm volatile("fence.proxy.alias;" ::: "memory");
  __threadfence_system();
}

#else

#pragma GCC visibility push(hidden)
void double_store_to_all(const char *kernel, void *address, const void *value, int bytes);
void double_settle_aliases(void);
#pragma GCC visibility pop

#define store_to_all(address, value)                                       \
  do {                                                                     \
    wide stored = value;                                                   \
    double_store_to_all(__func__, address, &stored, (int)sizeof stored); \
  } while (0)

INLINE void settle_aliases(void) { double_settle_aliases(); }

#endif

#endif
