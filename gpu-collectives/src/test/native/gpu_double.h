/*
 * Declarations shared by the two test doubles, which replace libcuda and libnccl in tests. Never
 * shipped.
 */
#ifndef WEFT_GPU_DOUBLE_H
#define WEFT_GPU_DOUBLE_H

#include <stddef.h>

/* The most ranges of device memory that one piece of work on a stream reads or writes. */
#define DOUBLE_MOST_RANGES 1024

struct double_range {
  const void *start;
  size_t bytes;
};

/* Records that the code under test broke a rule of the library. */
void double_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Counts a handle that must be freed: delta is 1 or -1. */
void double_count(const char *kind, int delta);

/* The device of the calling thread's context, or -1. */
int double_current_device(void);

/* The device of a live stream, or -1 with a violation. */
int double_stream_device(void *stream, const char *caller);

/* Whether the range is in one live allocation of the device. */
int double_is_on_device(const void *start, size_t bytes, int device);

/*
 * Adds or removes a user of the allocation around the range; a user keeps it from being freed.
 * Returns 0 unless the range is in one allocation of virtual memory, the only kind that windows
 * accept.
 */
int double_hold_virtual(const void *start, size_t bytes, int delta);

/* Whether other processes can import the virtual memory at this address. */
int double_is_exportable(const void *start);

/*
 * A kind of work. A graph keeps its argument, one block of malloc, and copies it for each launch.
 */
struct double_work {
  void (*run)(void *argument);              /* frees the argument */
  void (*launch)(void *argument);           /* called when it is enqueued to run; or NULL */
  void (*refer)(void *argument, int delta); /* called when a graph keeps or drops it; or NULL */
};

/* Runs work on the stream's thread, in order; the ranges are in use until it has run. */
void double_enqueue(void *stream, const struct double_work *work, void *argument,
                    const struct double_range *ranges, int count);

#endif
