/*
 * Writes that reach the memory of several devices. They need multicast addresses, and only they may
 * use them. The instructions exist from compute capability 9.0 on.
 */
#ifndef WEFT_MULTIMEM_H
#define WEFT_MULTIMEM_H

#include "system.h"

#ifdef __CUDACC__

/* The floats are only bits here: this is the widest form of the instruction. */
INLINE void store_to_all(wide *address, wide value) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address),
               "f"(__uint_as_float(value.x)), "f"(__uint_as_float(value.y)),
               "f"(__uint_as_float(value.z)), "f"(__uint_as_float(value.w))
               : "memory");
}

/* Makes writes at one address of memory visible at its other addresses, for all devices. */
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
