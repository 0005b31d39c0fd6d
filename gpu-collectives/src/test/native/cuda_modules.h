/*
 * Modules and launches of the double of libcuda. It reads the kernels and the sizes of their
 * arguments from PTX. It runs the same kernels as the C compiler compiled them from source, block
 * by block. Threads of a block are fibers that switch at each SYNC. Part of cuda_double.c.
 */
#include "../../main/cuda/kernel.h"

#include <setjmp.h>
#include <ucontext.h>

#define MAX_KERNELS 64
#define MAX_THREADS 1024
#define MAX_ARGUMENT_BYTES 4096
#define FIBER_BYTES ((size_t)64 << 10)
#define MAX_FREED 4096

enum { INVALID_IMAGE = 200, INVALID_PTX = 218, UNSUPPORTED_PTX_VERSION = 222, NOT_FOUND = 500 };

/* A kernel that is compiled into the double. */
struct compiled {
  const char *name;
  int argument_bytes;
  int most_threads;
  void (*run)(const void *);
};

struct function {
  struct module *module;
  struct compiled *compiled;
  int parameters; /* 1 for a struct; more if each has 8 bytes. */
  int is_loaded;
};

struct module {
  struct context *context;
  int count;
  struct function functions[MAX_KERNELS];
  struct module *next;
};

static struct compiled compiled_kernels[MAX_KERNELS];
static int compiled_count;
static struct module *modules;

/* Freed memory whose addresses are not allocated again; the oldest entry is overwritten first. */
static struct double_range freed[MAX_FREED];
static int freed_next;

static void note_freed(const void *start, size_t bytes) {
  freed[freed_next] = (struct double_range){start, bytes};
  freed_next = (freed_next + 1) % MAX_FREED;
}

void double_add_kernel(const char *name, int argument_bytes, int most_threads,
                       void (*run)(const void *)) {
  if (compiled_count == MAX_KERNELS || argument_bytes > MAX_ARGUMENT_BYTES) {
    give_up("the CUDA double has too many kernels, or one with too large arguments");
  }
  compiled_kernels[compiled_count++] = (struct compiled){name, argument_bytes, most_threads, run};
}

/* ---- blocks ---- */

__thread struct double_place double_here;

/*
 * The threads of a block; they run on the thread of a stream, and the next block has the same ones.
 * They switch by jumps, because swapcontext makes a system call each time.
 */
static __thread struct {
  jmp_buf scheduler;
  jmp_buf fibers[MAX_THREADS];
  int is_made[MAX_THREADS];
  int is_done[MAX_THREADS];
  char *stacks;
  uint32_t values[MAX_THREADS];
  void (*run)(const void *);
  const void *argument;
} block;

/* Waits until all threads of the block have reached this point. */
void double_sync(const char *kernel) {
  (void)kernel;
  if (_setjmp(block.fibers[double_here.thread]) == 0) {
    _longjmp(block.scheduler, 1);
  }
}

/* Runs the kernel of one block after the other. */
static void fiber_main(void) {
  while (1) {
    block.run(block.argument);
    block.is_done[double_here.thread] = 1;
    double_sync(NULL);
  }
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

static void enter_fiber(int thread) {
  ucontext_t fiber;
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = block.stacks + (size_t)thread * FIBER_BYTES;
  fiber.uc_stack.ss_size = FIBER_BYTES;
  fiber.uc_link = NULL;
  makecontext(&fiber, fiber_main, 0);
  setcontext(&fiber);
}

/* Runs a thread up to its next sync. */
static __attribute__((noinline)) void run_fiber(int thread) {
  if (_setjmp(block.scheduler) == 0) {
    if (block.is_made[thread]) {
      _longjmp(block.fibers[thread], 1);
    }
    block.is_made[thread] = 1;
    enter_fiber(thread);
  }
}

/*
 * Runs every thread up to its next sync; returns how many ended. The order alternates, so a read
 * without an earlier sync fails in one of the two orders.
 */
static int run_fibers(int threads, int is_backwards) {
  int done = 0;
  for (int i = 0; i < threads; i++) {
    int thread = is_backwards ? threads - 1 - i : i;
    if (!block.is_done[thread]) {
      double_here.thread = thread;
      run_fiber(thread);
    }
    done += block.is_done[thread];
  }
  return done;
}

static void run_block(const char *kernel, int threads) {
  memset(block.is_done, 0, threads * sizeof *block.is_done);
  int done = 0;
  for (int round = (int)(double_here.block & 1); done < threads; round++) {
    done = run_fibers(threads, round & 1);
    if (done > 0 && done < threads) {
      double_violation("%s: %d of %d threads wait for threads that ended", kernel, threads - done,
                       threads);
      memset(block.is_made, 0, sizeof block.is_made);
      return;
    }
  }
}

struct launch {
  struct compiled *kernel;
  int blocks;
  int threads;
  char argument[MAX_ARGUMENT_BYTES];
};

static pthread_key_t stacks_of_thread;

static void unmap_stacks(void *stacks) { munmap(stacks, MAX_THREADS * FIBER_BYTES); }

static void make_stacks_key(void) { pthread_key_create(&stacks_of_thread, unmap_stacks); }

/* Maps the stacks of a stream's fibers once, until its thread ends. */
static void map_stacks(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (block.stacks != NULL) {
    return;
  }
  pthread_once(&once, make_stacks_key);
  block.stacks = mmap(NULL, MAX_THREADS * FIBER_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block.stacks == MAP_FAILED) {
    give_up("the CUDA double cannot map stacks");
  }
  pthread_setspecific(stacks_of_thread, block.stacks);
}

static void run_launch(void *argument) {
  struct launch *launch = argument;
  map_stacks();
  block.run = launch->kernel->run;
  block.argument = launch->argument;
  double_here.threads = launch->threads;
  double_here.blocks = launch->blocks;
  for (int i = 0; i < launch->blocks; i++) {
    double_here.block = i;
    run_block(launch->kernel->name, launch->threads);
  }
  free(launch);
}

/* ---- modules ---- */

static struct compiled *find_compiled(const char *name, size_t length) {
  for (int i = 0; i < compiled_count; i++) {
    if (strlen(compiled_kernels[i].name) == length &&
        memcmp(compiled_kernels[i].name, name, length) == 0) {
      return &compiled_kernels[i];
    }
  }
  return NULL;
}

/*
 * Reads one entry of PTX: its name, and the size of its parameters, which is in brackets for a
 * struct and 8 bytes for each of several parameters.
 */
static const char *read_entry(struct module *module, const char *at) {
  size_t length = strcspn(at, "(");
  const char *end = at + strcspn(at, ")");
  struct compiled *compiled = find_compiled(at, length);
  const char *size = memchr(at, '[', end - at);
  int parameters = 0;
  for (const char *each = at; (each = strstr(each, ".param .")) != NULL && each < end; each++) {
    int has_8_bytes = strncmp(each + strlen(".param ."), "u64", 3) == 0 ||
                      strncmp(each + strlen(".param ."), "f64", 3) == 0;
    parameters += has_8_bytes || size != NULL ? 1 : MAX_ARGUMENT_BYTES;
  }
  int bytes = size != NULL ? atoi(size + 1) : parameters * 8;
  if (compiled == NULL || (size != NULL && parameters != 1) || bytes != compiled->argument_bytes) {
    double_violation("%.*s of %d bytes in the PTX is not what the double was compiled from",
                     (int)length, at, bytes);
    return at + length;
  }
  module->functions[module->count++] = (struct function){module, compiled, parameters, 0};
  return at + length;
}

static int ptx_version(const char *image) {
  const char *at = strstr(image, "\n.version ");
  int major = 0;
  int minor = 0;
  return at != NULL && sscanf(at, "\n.version %d.%d", &major, &minor) == 2 ? major * 10 + minor : 0;
}

/* The newest PTX version: CUDA 12.0 has PTX 8.0, and each minor version the next one. */
static int newest_ptx(void) {
  return (driver_version / 1000 - 4) * 10 + driver_version % 1000 / 10;
}

static void say(int count, const int *options, void **values, const char *text) {
  char *buffer = NULL;
  size_t bytes = 0;
  for (int i = 0; i < count; i++) {
    buffer = options[i] == 5 ? values[i] : buffer;
    bytes = options[i] == 6 ? (size_t)values[i] : bytes;
  }
  if (buffer != NULL) {
    snprintf(buffer, bytes, "%s", text);
  }
}

CUresult cuModuleLoadDataEx(struct module **out, const char *image, int count, const int *options,
                            void **values) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuModuleLoadDataEx");
  int version = ptx_version(image);
  if (result == SUCCESS && (version == 0 || version > newest_ptx())) {
    result = version == 0 ? INVALID_PTX : UNSUPPORTED_PTX_VERSION;
    say(count, options, values, version == 0 ? "no .version" : "Unsupported .version");
  }
  if (result == SUCCESS) {
    struct module *module = calloc(1, sizeof *module);
    module->context = current;
    const char *at = image;
    while ((at = strstr(at, ".entry ")) != NULL && module->count < MAX_KERNELS) {
      at = read_entry(module, at + strlen(".entry "));
    }
    module->next = modules;
    modules = module;
    double_count("modules", 1);
    *out = module;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static struct module **place_of_module(struct module *module) {
  struct module **each = &modules;
  while (*each != NULL && *each != module) {
    each = &(*each)->next;
  }
  return each;
}

static CUresult check_module(struct module *module, const char *caller) {
  CUresult result = check_context(caller);
  if (result == SUCCESS && (*place_of_module(module) == NULL || module->context != current)) {
    double_violation("%s of a module that is not loaded in this context", caller);
    result = INVALID_HANDLE;
  }
  return result;
}

/* A driver older than cuFuncLoad loads kernels when they are looked up. */
#ifdef WEFT_DOUBLE_WITHOUT_LOADING
#define LOADS_AT_LOOKUP 1
#else
#define LOADS_AT_LOOKUP 0

CUresult cuFuncLoad(struct function *function) {
  pthread_mutex_lock(&lock);
  CUresult result = check_module(function->module, "cuFuncLoad");
  if (result == SUCCESS) {
    function->is_loaded = 1;
  }
  pthread_mutex_unlock(&lock);
  return result;
}
#endif

CUresult cuModuleGetFunction(struct function **out, struct module *module, const char *name) {
  pthread_mutex_lock(&lock);
  CUresult result = check_module(module, "cuModuleGetFunction");
  if (result == SUCCESS) {
    result = NOT_FOUND;
    for (int i = 0; i < module->count; i++) {
      if (strcmp(module->functions[i].compiled->name, name) == 0) {
        *out = &module->functions[i];
        module->functions[i].is_loaded |= LOADS_AT_LOOKUP;
        result = SUCCESS;
      }
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static int is_busy(struct context *context) {
  for (struct stream *each = streams; each != NULL; each = each->next) {
    if (each->device == context->device && each->pending > 0) {
      return 1;
    }
  }
  return 0;
}

CUresult cuModuleUnload(struct module *module) {
  pthread_mutex_lock(&lock);
  CUresult result = check_module(module, "cuModuleUnload");
  if (result == SUCCESS) {
    if (is_busy(module->context)) {
      double_violation("cuModuleUnload while work of the device is in flight");
    }
    *place_of_module(module) = module->next;
    free(module);
    double_count("modules", -1);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- launches ---- */

static struct function *find_function(struct function *function) {
  for (struct module *each = modules; each != NULL; each = each->next) {
    if (function >= each->functions && function < each->functions + each->count) {
      return function;
    }
  }
  return NULL;
}

static CUresult check_launch(struct function *function, unsigned blocks, unsigned threads,
                             struct stream *stream, const size_t *bytes) {
  CUresult result = check_stream(stream, "cuLaunchKernel");
  if (result != SUCCESS) {
    return result;
  }
  if (find_function(function) == NULL || function->module->context != current) {
    double_violation("cuLaunchKernel of a function that is not loaded in this context");
    return INVALID_HANDLE;
  }
  const struct compiled *kernel = function->compiled;
  if (!function->is_loaded) {
    double_violation("%s is loaded by its first launch, which waits for work of the context",
                     kernel->name);
  }
  if (bytes != NULL && *bytes != (size_t)kernel->argument_bytes) {
    double_violation("%s takes %d bytes of arguments, not %zu", kernel->name,
                     kernel->argument_bytes, *bytes);
    return INVALID_VALUE;
  }
  if (blocks < 1 || blocks > 0x7fffffffu || threads < 1 || threads % 32 != 0 ||
      threads > (unsigned)kernel->most_threads) {
    double_violation("%s in %u blocks of %u threads", kernel->name, blocks, threads);
    return INVALID_VALUE;
  }
  return SUCCESS;
}

static int is_freed(const char *at) {
  for (int i = 0; i < MAX_FREED; i++) {
    const char *start = freed[i].start;
    if (start != NULL && at >= start && at < start + freed[i].bytes) {
      return 1;
    }
  }
  return 0;
}

/* Marks memory of pointers in the arguments as in use until the kernel has run. */
static CUresult collect_uses(const struct launch *launch, struct double_range *ranges, int *count) {
  for (int at = 0; at + 8 <= launch->kernel->argument_bytes && *count < DOUBLE_MOST_RANGES;
       at += 8) {
    char *word;
    memcpy(&word, launch->argument + at, sizeof word);
    struct allocation *found = covering(word, 1);
    if (found == NULL && is_freed(word)) {
      double_violation("%s uses memory that was freed, at byte %d of its arguments",
                       launch->kernel->name, at);
      return INVALID_VALUE;
    }
    if (found != NULL && found->kind != IMPORTED && found->device >= 0 &&
        found->device != current->device && !peer_access[current->device][found->device]) {
      double_violation("%s uses memory of device %d on device %d", launch->kernel->name,
                       found->device, current->device);
      return INVALID_VALUE;
    }
    if (found != NULL) {
      ranges[(*count)++] = (struct double_range){word, 1};
    }
  }
  return SUCCESS;
}

/* The arguments are one buffer with its size, or the address of each. */
static int has_arguments(void **parameters, void **extra) {
  if (extra == NULL) {
    return parameters != NULL;
  }
  return parameters == NULL && extra[0] == (void *)1 && extra[2] == (void *)2 && extra[4] == NULL;
}

static void copy_arguments(char *to, const struct function *function, void **parameters,
                           void **extra) {
  if (extra != NULL || function->parameters == 1) {
    memcpy(to, extra != NULL ? extra[1] : parameters[0], function->compiled->argument_bytes);
    return;
  }
  for (int i = 0; i < function->parameters; i++) {
    memcpy(to + i * 8, parameters[i], 8);
  }
}

CUresult cuLaunchKernel(struct function *function, unsigned blocks, unsigned blocks_y,
                        unsigned blocks_z, unsigned threads, unsigned threads_y,
                        unsigned threads_z, unsigned shared_bytes, struct stream *stream,
                        void **parameters, void **extra) {
  pthread_mutex_lock(&lock);
  CUresult result = SUCCESS;
  if (!has_arguments(parameters, extra) || blocks_y * blocks_z * threads_y * threads_z != 1 ||
      shared_bytes != 0) {
    double_violation("cuLaunchKernel without arguments, or not along x");
    result = INVALID_VALUE;
  } else {
    result = check_launch(function, blocks, threads, stream, extra == NULL ? NULL : extra[3]);
  }
  if (result == SUCCESS) {
    struct launch *launch = malloc(sizeof *launch);
    launch->kernel = function->compiled;
    launch->blocks = (int)blocks;
    launch->threads = (int)threads;
    copy_arguments(launch->argument, function, parameters, extra);
    struct double_range ranges[DOUBLE_MOST_RANGES];
    int count = 0;
    result = collect_uses(launch, ranges, &count);
    if (result == SUCCESS) {
      enqueue_locked(stream, run_launch, launch, ranges, count);
    } else {
      free(launch);
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

#include "../../main/cuda/concat.cu"
#include "../../main/cuda/partition.cu"
#include "../../../../examples/src/main/cuda/features.cu"
