/*
 * Communication of kernels with other devices and the host: a store that follows all earlier
 * writes, a load that precedes all later reads, a clock, and a pause.
 */
#ifndef WEFT_SYSTEM_H
#define WEFT_SYSTEM_H

#include "kernel.h"

#ifdef __CUDACC__

INLINE void store_release(uint32_t *address, uint32_t value) {
  __threadfence_system();
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

INLINE uint32_t load_acquire(const uint32_t *address) {
  uint32_t value;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

/* Nanoseconds since an arbitrary time. */
INLINE int64_t now(void) {
  int64_t nanos;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanos));
  return nanos;
}

INLINE void pause_shortly(void) { __nanosleep(200); }

/* The widest unit of one read or write, at multiples of its size. */
typedef uint4 wide;

INLINE wide wide_of(uint64_t low, uint64_t high) {
  return make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32));
}

#else

#include <sched.h>
#include <time.h>

INLINE void store_release(uint32_t *address, uint32_t value) {
  __atomic_store_n(address, value, __ATOMIC_RELEASE);
}

INLINE uint32_t load_acquire(const uint32_t *address) {
  return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

INLINE int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

INLINE void pause_shortly(void) { sched_yield(); }

typedef struct {
  uint64_t low;
  uint64_t high;
} __attribute__((aligned(16))) wide;

INLINE wide wide_of(uint64_t low, uint64_t high) { return (wide){low, high}; }

#endif

#endif
