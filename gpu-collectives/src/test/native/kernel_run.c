/*
 * Runs launches of the kernels in src/main/cuda on the host: kernel_run INPUT OUTPUT. The same
 * sources are compiled by a C compiler, with sanitizers. Every buffer is an allocation of its exact
 * size, so the address sanitizer finds a read or write beyond it. The threads of a block are fibers
 * that switch at each SYNC; the order alternates, so a missing SYNC gives a wrong result.
 *
 * The input, in words of 8 bytes: the number of buffers; for each its size, its fill byte or -1, and
 * with -1 its bytes, rounded up to words; the number of links; for each the buffer and the offset
 * where an address goes, and the buffer and the offset that it points to; the number of launches;
 * for each its name in 4 words, blocks, threads, the number of bytes and the bytes of its argument.
 * Buffer -1 in a link is the arguments of all launches, one after the other. The output is all
 * buffers, one after the other.
 */
#define _GNU_SOURCE
#include "../../main/cuda/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size) ((void)(save))
#define __sanitizer_finish_switch_fiber(save, bottom, size) ((void)(save))
#endif

#define MAX_KERNELS 64
#define MAX_THREADS 1024
#define FIBER_BYTES ((size_t)128 << 10)

struct compiled {
  const char *name;
  int argument_bytes;
  int most_threads;
  void (*run)(const void *);
};

static struct compiled kernels[MAX_KERNELS];
static int kernel_count;

__thread struct double_place double_here;

static struct {
  ucontext_t scheduler;
  ucontext_t fibers[MAX_THREADS];
  char *stacks;
  int is_done[MAX_THREADS];
  uint32_t values[MAX_THREADS];
  const struct compiled *kernel;
  const void *argument;
  const void *scheduler_bottom;
  size_t scheduler_size;
} block;

static void give_up(const char *why, const char *what) {
  fprintf(stderr, "kernel_run: %s: %s\n", what, why);
  exit(2);
}

void double_add_kernel(const char *name, int argument_bytes, int most_threads,
                       void (*run)(const void *)) {
  if (kernel_count == MAX_KERNELS) {
    give_up("there are too many kernels", name);
  }
  kernels[kernel_count++] = (struct compiled){name, argument_bytes, most_threads, run};
}

/* ---- the threads of a block ---- */

static void to_scheduler(int is_end) {
  void *fake = NULL;
  int thread = double_here.thread;
  __sanitizer_start_switch_fiber(is_end ? NULL : &fake, block.scheduler_bottom,
                                 block.scheduler_size);
  swapcontext(&block.fibers[thread], &block.scheduler);
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

void double_sync(const char *kernel) {
  (void)kernel;
  to_scheduler(0);
}

uint32_t double_match(const char *kernel, uint32_t value) {
  int thread = double_here.thread;
  block.values[thread] = value;
  double_sync(kernel);
  uint32_t same = 0;
  for (int lane = 0; lane < 32; lane++) {
    same |= (uint32_t)(block.values[(thread & ~31) + lane] == value) << lane;
  }
  double_sync(kernel);
  return same;
}

uint32_t double_ballot(const char *kernel, int value) {
  uint32_t same = double_match(kernel, value != 0);
  return value != 0 ? same : ~same;
}

static void fiber_main(void) {
  __sanitizer_finish_switch_fiber(NULL, &block.scheduler_bottom, &block.scheduler_size);
  block.kernel->run(block.argument);
  block.is_done[double_here.thread] = 1;
  to_scheduler(1);
}

static void run_fiber(int thread) {
  void *fake = NULL;
  char *stack = block.stacks + (size_t)thread * FIBER_BYTES;
  double_here.thread = thread;
  __sanitizer_start_switch_fiber(&fake, stack, FIBER_BYTES);
  swapcontext(&block.scheduler, &block.fibers[thread]);
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

static void make_fiber(int thread) {
  ucontext_t *fiber = &block.fibers[thread];
  getcontext(fiber);
  fiber->uc_stack.ss_sp = block.stacks + (size_t)thread * FIBER_BYTES;
  fiber->uc_stack.ss_size = FIBER_BYTES;
  fiber->uc_link = NULL;
  makecontext(fiber, fiber_main, 0);
  block.is_done[thread] = 0;
}

static void run_block(int threads) {
  for (int thread = 0; thread < threads; thread++) {
    make_fiber(thread);
  }
  int done = 0;
  for (int round = (int)(double_here.block & 1); done < threads; round++) {
    int before = done;
    done = 0;
    for (int i = 0; i < threads; i++) {
      int thread = round & 1 ? threads - 1 - i : i;
      if (!block.is_done[thread]) {
        run_fiber(thread);
      }
      done += block.is_done[thread];
    }
    if (done < threads && (done > 0 || before > 0)) {
      give_up("some threads wait for threads that ended", block.kernel->name);
    }
  }
}

/* ---- input and output ---- */

static FILE *input;

static void read_bytes(void *to, size_t bytes) {
  if (bytes > 0 && fread(to, 1, bytes, input) != bytes) {
    give_up("the input ends too early", "reading");
  }
}

static int64_t read_word(void) {
  int64_t word;
  read_bytes(&word, sizeof word);
  return word;
}

static void skip_padding(int64_t bytes) {
  char padding[8];
  read_bytes(padding, (size_t)(-bytes & 7));
}

struct buffer {
  char *start;
  int64_t bytes;
};

static struct buffer read_buffer(void) {
  struct buffer made;
  made.bytes = read_word();
  made.start = malloc((size_t)made.bytes);
  int64_t fill = read_word();
  if (fill >= 0) {
    memset(made.start, (int)fill, (size_t)made.bytes);
  } else {
    read_bytes(made.start, (size_t)made.bytes);
    skip_padding(made.bytes);
  }
  return made;
}

struct link {
  int64_t in;
  int64_t at;
  int64_t to;
  int64_t offset;
};

static const struct compiled *find(const char *name) {
  for (int i = 0; i < kernel_count; i++) {
    if (strcmp(kernels[i].name, name) == 0) {
      return &kernels[i];
    }
  }
  give_up("there is no such kernel", name);
  return NULL;
}

static void set_address(char *place, const struct buffer *to, int64_t offset) {
  char *address = to->start + offset;
  memcpy(place, &address, sizeof address);
}

/* Runs one launch; links of its argument are relative to all arguments before it. */
static int64_t run_launch(const struct link *links, int64_t count, const struct buffer *buffers,
                          int64_t before) {
  char name[32];
  read_bytes(name, sizeof name);
  int64_t blocks = read_word();
  int64_t threads = read_word();
  int64_t bytes = read_word();
  block.kernel = find(name);
  if (bytes != block.kernel->argument_bytes || threads > block.kernel->most_threads) {
    give_up("other threads or argument than in the source", name);
  }
  char *argument = aligned_alloc(16, (size_t)((bytes + 15) & ~15));
  read_bytes(argument, (size_t)bytes);
  skip_padding(bytes);
  for (int64_t i = 0; i < count; i++) {
    if (links[i].in == -1 && links[i].at >= before && links[i].at < before + bytes) {
      set_address(argument + links[i].at - before, &buffers[links[i].to], links[i].offset);
    }
  }
  block.argument = argument;
  double_here.threads = (int)threads;
  double_here.blocks = blocks;
  for (int64_t i = 0; i < blocks; i++) {
    double_here.block = i;
    run_block((int)threads);
  }
  free(argument);
  return before + bytes;
}

int main(int count, char **arguments) {
  if (count != 3 || (input = fopen(arguments[1], "rb")) == NULL) {
    give_up("cannot be read", count == 3 ? arguments[1] : "the arguments");
  }
  block.stacks = malloc(MAX_THREADS * FIBER_BYTES);
  int64_t buffer_count = read_word();
  struct buffer *buffers = calloc((size_t)buffer_count + 1, sizeof *buffers);
  for (int64_t i = 0; i < buffer_count; i++) {
    buffers[i] = read_buffer();
  }
  int64_t link_count = read_word();
  struct link *links = calloc((size_t)link_count + 1, sizeof *links);
  for (int64_t i = 0; i < link_count; i++) {
    read_bytes(&links[i], sizeof links[i]);
    if (links[i].in >= 0) {
      set_address(buffers[links[i].in].start + links[i].at, &buffers[links[i].to],
                  links[i].offset);
    }
  }
  int64_t launches = read_word();
  int64_t before = 0;
  for (int64_t i = 0; i < launches; i++) {
    before = run_launch(links, link_count, buffers, before);
  }
  FILE *output = fopen(arguments[2], "wb");
  for (int64_t i = 0; i < buffer_count; i++) {
    fwrite(buffers[i].start, 1, (size_t)buffers[i].bytes, output);
    free(buffers[i].start);
  }
  free(buffers);
  free(links);
  free(block.stacks);
  fclose(input);
  return fclose(output) == 0 ? 0 : 2;
}

#include "../../main/cuda/concat.cu"
#include "../../main/cuda/partition.cu"
