/*
 * The dialect of C in which kernels are written. nvcc compiles it for devices. A C compiler
 * compiles it for the test double of libcuda, which runs the threads of a block in turn. So there
 * are two rules. All threads of a block reach SYNC, SYNC_WARP, MATCH and BALLOT equally often. A
 * kernel takes one struct of at most 4096 bytes, in which every field is at a multiple of its size.
 */
#ifndef WEFT_KERNEL_H
#define WEFT_KERNEL_H

#include <stdint.h>

#ifdef __CUDACC__

/* A kernel whose blocks have this many threads; a is its argument. */
#define KERNEL(name, type, threads)                      \
  extern "C" __global__ void __launch_bounds__(threads) \
      name(const __grid_constant__ struct type a)
#define SHARED __shared__
#define INLINE static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define THREAD ((int)threadIdx.x)
#define THREADS ((int)blockDim.x)
#define BLOCK ((int64_t)blockIdx.x)
#define BLOCKS ((int64_t)gridDim.x)
#define SYNC() __syncthreads()
#define SYNC_WARP() __syncwarp()
/* The lanes of the warp that have the same value. */
#define MATCH(value) __match_any_sync(0xffffffffu, value)
/* The lanes of the warp where the value is not 0. */
#define BALLOT(value) __ballot_sync(0xffffffffu, value)
#define BITS(value) __popc(value)
#define ADD(address, value) atomicAdd(address, value)
#define OR(address, value) atomicOr(address, value)

#else

/* Each copy of the double has its own functions: a process may have loaded several. */
#pragma GCC visibility push(hidden)
void double_sync(const char *kernel);
uint32_t double_match(const char *kernel, uint32_t value);
uint32_t double_ballot(const char *kernel, int value);
void double_add_kernel(const char *name, int argument_bytes, int threads,
                       void (*run)(const void *argument));

struct double_place {
  int thread;
  int threads;
  int64_t block;
  int64_t blocks;
};
extern __thread struct double_place double_here;
#pragma GCC visibility pop

#define KERNEL(name, type, most_threads)                                     \
  static void name(const struct type a);                                     \
  static void name##_of(const void *argument) { name(*(const struct type *)argument); } \
  __attribute__((constructor)) static void name##_add(void) {                \
    double_add_kernel(#name, sizeof(struct type), most_threads, name##_of);  \
  }                                                                          \
  static void name(const struct type a)
#define SHARED static __thread
#define INLINE static inline
#define UNROLL
#define THREAD (double_here.thread)
#define THREADS (double_here.threads)
#define BLOCK (double_here.block)
#define BLOCKS (double_here.blocks)
#define SYNC() double_sync(__func__)
#define SYNC_WARP() double_sync(__func__)
#define MATCH(value) double_match(__func__, value)
#define BALLOT(value) double_ballot(__func__, value)
#define BITS(value) __builtin_popcount(value)
#define ADD(address, value) __atomic_fetch_add(address, value, __ATOMIC_RELAXED)
#define OR(address, value) __atomic_fetch_or(address, value, __ATOMIC_RELAXED)

#endif

/* The items of one thread. A launch may have fewer threads than items. */
#define EACH(item, count)                                                    \
  for (int64_t item = BLOCK * THREADS + THREAD; item < (count); item += BLOCKS * THREADS)

#define LANE (THREAD & 31)
#define WARP (THREAD >> 5)

#endif
