/*
 * A test double of libcuda: 8 devices whose memory is host memory and whose streams are threads.
 * It is strict where the driver is silent: an event that was never recorded, a foreign context,
 * memory freed while in use and handles that are dead are violations, which tests read.
 */
#define _GNU_SOURCE
#include "gpu_double.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 8
#define DEVICE_BYTES ((size_t)2 << 30)
#define MOST_TEXT 8192

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_READY = 600,
  ILLEGAL_STATE = 401
};

typedef int CUresult;

struct context {
  int device;
  int retained;
  int lost;
};

struct allocation {
  char *start;
  size_t bytes;
  int device; /* -1: pinned host memory */
  int uses;
  struct allocation *next;
};

struct event {
  long recorded;
  long completed;
  int device;
  int references;
  struct event *next;
};

struct work {
  void (*run)(void *);
  void *argument;
  int count;
  struct allocation **uses;
  struct work *next;
};

struct stream {
  int device;
  int priority;
  int pending;
  int closing;
  pthread_t thread;
  struct work *first;
  struct work **last;
  struct stream *next;
};

/* One lock and one condition for everything: a double is to be right, not fast. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct context contexts[DEVICES];
static struct allocation *allocations;
static struct event *events;
static struct stream *streams;
static size_t used[DEVICES];
static int initialized;
static int visible = DEVICES;
static int driver_version = 12080;
static int paused;
static int violations;
static char violation_text[MOST_TEXT];
static __thread struct context *current;

static struct { const char *kind; int live; } counts[16];

/* ---- what tests and the other double call ---- */

void double_violation(const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&own);
  violations++;
  size_t length = strlen(violation_text);
  snprintf(violation_text + length, MOST_TEXT - length, "%s\n", line);
  pthread_mutex_unlock(&own);
}

int cudaDoubleViolations(char *text, int size) {
  int count = violations;
  snprintf(text, size, "%s", violation_text);
  violations = 0;
  violation_text[0] = 0;
  return count;
}

void double_count(const char *kind, int delta) {
  static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&own);
  for (int i = 0; i < 16; i++) {
    if (counts[i].kind == NULL || strcmp(counts[i].kind, kind) == 0) {
      counts[i].kind = kind;
      counts[i].live += delta;
      break;
    }
  }
  pthread_mutex_unlock(&own);
}

/* Handles that have not been given back, as text; the sum of them. */
int cudaDoubleLive(char *text, int size) {
  int sum = 0;
  text[0] = 0;
  for (int i = 0; i < 16 && counts[i].kind != NULL; i++) {
    if (counts[i].live != 0) {
      size_t length = strlen(text);
      snprintf(text + length, size - length, "%s: %d\n", counts[i].kind, counts[i].live);
      sum += counts[i].live;
    }
  }
  return sum;
}

/* While paused no stream starts another piece of work. */
void cudaDoublePause(int pause) {
  pthread_mutex_lock(&lock);
  paused = pause;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* A device that fails everything with this code from now on, or works again with 0. */
void cudaDoubleLose(int device, int code) {
  pthread_mutex_lock(&lock);
  contexts[device].lost = code;
  pthread_mutex_unlock(&lock);
}

void cudaDoubleDriver(int version, int devices) {
  driver_version = version;
  visible = devices;
}

int cudaDoublePriority(struct stream *stream) { return stream->priority; }

int double_current_device(void) { return current == NULL ? -1 : current->device; }

static struct allocation *covering(const void *start, size_t bytes) {
  for (struct allocation *each = allocations; each != NULL; each = each->next) {
    const char *at = start;
    if (at >= each->start && bytes <= each->bytes && at + bytes <= each->start + each->bytes) {
      return each;
    }
  }
  return NULL;
}

int double_is_on_device(const void *start, size_t bytes, int device) {
  pthread_mutex_lock(&lock);
  struct allocation *found = covering(start, bytes);
  int here = found != NULL && found->device == device;
  pthread_mutex_unlock(&lock);
  return here;
}

/* ---- checks ---- */

static int is_living_stream(struct stream *stream) {
  for (struct stream *each = streams; each != NULL; each = each->next) {
    if (each == stream) {
      return 1;
    }
  }
  return 0;
}

static int is_living_event(struct event *event) {
  for (struct event *each = events; each != NULL; each = each->next) {
    if (each == event) {
      return 1;
    }
  }
  return 0;
}

static CUresult check_context(const char *caller) {
  if (!initialized) {
    double_violation("%s before cuInit", caller);
    return NOT_INITIALIZED;
  }
  if (current == NULL || current->retained == 0) {
    double_violation("%s on a thread without a context", caller);
    return INVALID_CONTEXT;
  }
  return current->lost;
}

static CUresult check_stream(struct stream *stream, const char *caller) {
  CUresult result = check_context(caller);
  if (result != SUCCESS) {
    return result;
  }
  if (!is_living_stream(stream)) {
    double_violation("%s on a stream that is not there", caller);
    return INVALID_HANDLE;
  }
  if (stream->device != current->device) {
    double_violation("%s on a stream of device %d in the context of device %d", caller,
                     stream->device, current->device);
    return INVALID_CONTEXT;
  }
  return SUCCESS;
}

static CUresult check_event(struct event *event, const char *caller) {
  if (!is_living_event(event)) {
    double_violation("%s on an event that is not there", caller);
    return INVALID_HANDLE;
  }
  return SUCCESS;
}

int double_stream_device(void *stream, const char *caller) {
  pthread_mutex_lock(&lock);
  CUresult result = check_stream(stream, caller);
  pthread_mutex_unlock(&lock);
  return result == SUCCESS ? ((struct stream *)stream)->device : -1;
}

/* ---- streams ---- */

static void *stream_loop(void *argument) {
  struct stream *stream = argument;
  pthread_mutex_lock(&lock);
  for (;;) {
    while ((stream->first == NULL && !stream->closing) || (paused && stream->first != NULL)) {
      pthread_cond_wait(&changed, &lock);
    }
    struct work *work = stream->first;
    if (work == NULL) {
      break;
    }
    pthread_mutex_unlock(&lock);
    work->run(work->argument);
    pthread_mutex_lock(&lock);
    stream->first = work->next;
    if (stream->first == NULL) {
      stream->last = &stream->first;
    }
    for (int i = 0; i < work->count; i++) {
      work->uses[i]->uses--;
    }
    stream->pending--;
    free(work->uses);
    free(work);
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void enqueue_locked(struct stream *stream, void (*run)(void *), void *argument,
                           const struct double_range *ranges, int count) {
  struct work *work = calloc(1, sizeof *work);
  work->run = run;
  work->argument = argument;
  work->uses = calloc(count == 0 ? 1 : count, sizeof *work->uses);
  for (int i = 0; i < count; i++) {
    struct allocation *found = covering(ranges[i].start, ranges[i].bytes);
    if (found != NULL) {
      found->uses++;
      work->uses[work->count++] = found;
    }
  }
  *stream->last = work;
  stream->last = &work->next;
  stream->pending++;
  pthread_cond_broadcast(&changed);
}

void double_enqueue(void *stream, void (*run)(void *), void *argument,
                    const struct double_range *ranges, int count) {
  pthread_mutex_lock(&lock);
  enqueue_locked(stream, run, argument, ranges, count);
  pthread_mutex_unlock(&lock);
}

CUresult cuStreamCreateWithPriority(struct stream **out, unsigned flags, int priority) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuStreamCreateWithPriority");
  if (result == SUCCESS && (flags != 1 || priority > 0 || priority < -5)) {
    double_violation("a stream with flags %u and priority %d", flags, priority);
    result = INVALID_VALUE;
  }
  if (result == SUCCESS) {
    struct stream *stream = calloc(1, sizeof *stream);
    stream->device = current->device;
    stream->priority = priority;
    stream->last = &stream->first;
    stream->next = streams;
    streams = stream;
    pthread_create(&stream->thread, NULL, stream_loop, stream);
    double_count("streams", 1);
    *out = stream;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuStreamDestroy_v2(struct stream *stream) {
  pthread_mutex_lock(&lock);
  CUresult result = check_stream(stream, "cuStreamDestroy");
  if (result == INVALID_HANDLE || result == INVALID_CONTEXT) {
    pthread_mutex_unlock(&lock);
    return result;
  }
  if (stream->pending > 0) {
    double_violation("cuStreamDestroy with %d pieces of work in flight", stream->pending);
  }
  stream->closing = 1;
  for (struct stream **each = &streams; *each != NULL; each = &(*each)->next) {
    if (*each == stream) {
      *each = stream->next;
      break;
    }
  }
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  pthread_join(stream->thread, NULL);
  free(stream);
  double_count("streams", -1);
  return result;
}

CUresult cuStreamQuery(struct stream *stream) {
  pthread_mutex_lock(&lock);
  CUresult result = check_stream(stream, "cuStreamQuery");
  if (result == SUCCESS && stream->pending > 0) {
    result = NOT_READY;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- events ---- */

struct mark {
  struct event *event;
  long number;
};

static void release_event_locked(struct event *event) {
  if (--event->references == 0) {
    free(event);
  }
}

static void run_record(void *argument) {
  struct mark *mark = argument;
  pthread_mutex_lock(&lock);
  mark->event->completed = mark->number;
  release_event_locked(mark->event);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  free(mark);
}

static void run_wait(void *argument) {
  struct mark *mark = argument;
  pthread_mutex_lock(&lock);
  while (mark->event->completed < mark->number) {
    pthread_cond_wait(&changed, &lock);
  }
  release_event_locked(mark->event);
  pthread_mutex_unlock(&lock);
  free(mark);
}

static struct mark *mark_locked(struct event *event) {
  struct mark *mark = malloc(sizeof *mark);
  mark->event = event;
  mark->number = event->recorded;
  event->references++;
  return mark;
}

CUresult cuEventCreate(struct event **out, unsigned flags) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuEventCreate");
  if (result == SUCCESS && flags != 2) {
    double_violation("an event with timing (flags %u), which costs a synchronisation", flags);
  }
  if (result == SUCCESS) {
    struct event *event = calloc(1, sizeof *event);
    event->device = current->device;
    event->references = 1;
    event->next = events;
    events = event;
    double_count("events", 1);
    *out = event;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuEventDestroy_v2(struct event *event) {
  pthread_mutex_lock(&lock);
  CUresult result = check_event(event, "cuEventDestroy");
  if (result == SUCCESS) {
    for (struct event **each = &events; *each != NULL; each = &(*each)->next) {
      if (*each == event) {
        *each = event->next;
        break;
      }
    }
    release_event_locked(event);
    double_count("events", -1);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuEventRecord(struct event *event, struct stream *stream) {
  pthread_mutex_lock(&lock);
  CUresult result = check_stream(stream, "cuEventRecord");
  if (result == SUCCESS) {
    result = check_event(event, "cuEventRecord");
  }
  if (result == SUCCESS && event->device != stream->device) {
    double_violation("an event of device %d recorded on device %d", event->device, stream->device);
    result = INVALID_HANDLE;
  }
  if (result == SUCCESS) {
    event->recorded++;
    enqueue_locked(stream, run_record, mark_locked(event), NULL, 0);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuEventQuery(struct event *event) {
  pthread_mutex_lock(&lock);
  CUresult result = check_event(event, "cuEventQuery");
  if (result == SUCCESS && event->recorded == 0) {
    double_violation("cuEventQuery on an event that was never recorded");
    result = INVALID_HANDLE;
  }
  if (result == SUCCESS && contexts[event->device].lost) {
    result = contexts[event->device].lost;
  }
  if (result == SUCCESS && event->completed < event->recorded) {
    result = NOT_READY;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuStreamWaitEvent(struct stream *stream, struct event *event, unsigned flags) {
  (void)flags;
  pthread_mutex_lock(&lock);
  CUresult result = check_stream(stream, "cuStreamWaitEvent");
  if (result == SUCCESS) {
    result = check_event(event, "cuStreamWaitEvent");
  }
  if (result == SUCCESS && event->recorded == 0) {
    double_violation("cuStreamWaitEvent on an event that was never recorded");
    result = INVALID_HANDLE;
  }
  if (result == SUCCESS) {
    enqueue_locked(stream, run_wait, mark_locked(event), NULL, 0);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- memory ---- */

static CUresult allocate(void **out, size_t bytes, int device, const char *caller) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context(caller);
  if (result == SUCCESS && bytes == 0) {
    result = INVALID_VALUE;
  }
  if (result == SUCCESS && device >= 0 && used[device] + bytes > DEVICE_BYTES) {
    result = OUT_OF_MEMORY;
  }
  if (result == SUCCESS) {
    struct allocation *made = calloc(1, sizeof *made);
    void *memory = NULL;
    if (posix_memalign(&memory, 512, bytes) != 0) {
      abort();
    }
    made->start = memory;
    made->bytes = bytes;
    made->device = device;
    made->next = allocations;
    allocations = made;
    if (device >= 0) {
      used[device] += bytes;
    }
    double_count(device < 0 ? "pinned buffers" : "device allocations", 1);
    *out = memory;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static CUresult release(void *start, int on_device, const char *caller) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context(caller);
  if (result == INVALID_CONTEXT || result == NOT_INITIALIZED) {
    pthread_mutex_unlock(&lock);
    return result;
  }
  struct allocation **each = &allocations;
  while (*each != NULL && (*each)->start != start) {
    each = &(*each)->next;
  }
  struct allocation *found = *each;
  if (found == NULL || (found->device >= 0) != on_device) {
    double_violation("%s of memory that is not there", caller);
    result = INVALID_VALUE;
  } else if (found->uses > 0) {
    double_violation("%s of %zu bytes while %d pieces of work use them", caller, found->bytes,
                     found->uses);
    result = ILLEGAL_STATE;
  } else {
    *each = found->next;
    if (on_device) {
      used[found->device] -= found->bytes;
    }
    double_count(on_device ? "device allocations" : "pinned buffers", -1);
    memset(found->start, 0xdb, found->bytes < 4096 ? found->bytes : 4096);
    free(found->start);
    free(found);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemAlloc_v2(void **out, size_t bytes) {
  return allocate(out, bytes, double_current_device(), "cuMemAlloc");
}

CUresult cuMemFree_v2(void *start) { return release(start, 1, "cuMemFree"); }

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
  if (flags != 1) {
    double_violation("pinned memory for one context only (flags %u)", flags);
  }
  return allocate(out, bytes, -1, "cuMemHostAlloc");
}

CUresult cuMemFreeHost(void *start) { return release(start, 0, "cuMemFreeHost"); }

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  CUresult result = check_context("cuMemGetInfo");
  if (result == SUCCESS) {
    *total = DEVICE_BYTES;
    *free_bytes = DEVICE_BYTES - used[current->device];
  }
  return result;
}

struct copy {
  void *to;
  const void *from;
  size_t bytes;
};

static void run_copy(void *argument) {
  struct copy *copy = argument;
  memmove(copy->to, copy->from, copy->bytes);
  free(copy);
}

static CUresult copy_async(void *to, const void *from, size_t bytes, struct stream *stream,
                           int to_device, int from_device, const char *caller) {
  pthread_mutex_lock(&lock);
  CUresult result = check_stream(stream, caller);
  struct double_range ranges[2] = {{to, bytes}, {from, bytes}};
  for (int i = 0; result == SUCCESS && i < 2; i++) {
    struct allocation *found = covering(ranges[i].start, bytes);
    int on_device = found != NULL && found->device >= 0;
    if (on_device != (i == 0 ? to_device : from_device)) {
      double_violation("%s: %zu bytes are %son a device", caller, bytes, on_device ? "" : "not ");
      result = INVALID_VALUE;
    }
  }
  if (result == SUCCESS) {
    struct copy *copy = malloc(sizeof *copy);
    *copy = (struct copy){to, from, bytes};
    enqueue_locked(stream, run_copy, copy, ranges, 2);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, struct stream *stream) {
  return copy_async(to, from, bytes, stream, 1, 0, "cuMemcpyHtoDAsync");
}

CUresult cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes, struct stream *stream) {
  return copy_async(to, from, bytes, stream, 0, 1, "cuMemcpyDtoHAsync");
}

CUresult cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t bytes, struct stream *stream) {
  return copy_async(to, from, bytes, stream, 1, 1, "cuMemcpyDtoDAsync");
}

CUresult cuPointerGetAttribute(void *out, int attribute, const void *pointer) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuPointerGetAttribute");
  struct allocation *found = covering(pointer, 1);
  if (result == SUCCESS && (found == NULL || attribute != 2)) {
    result = INVALID_VALUE;
  }
  if (result == SUCCESS) {
    *(unsigned *)out = found->device >= 0 ? 2 : 1;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- devices and contexts ---- */

CUresult cuInit(unsigned flags) {
  (void)flags;
  if (visible == 0) {
    return NO_DEVICE;
  }
  initialized = 1;
  return SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  *version = driver_version;
  return SUCCESS;
}

CUresult cuGetErrorName(int code, const char **name) {
  switch (code) {
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case INVALID_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
    case 719: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: *name = "CUDA_ERROR_OF_THE_DOUBLE"; break;
  }
  return SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  *count = visible;
  return initialized ? SUCCESS : NOT_INITIALIZED;
}

CUresult cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < visible ? SUCCESS : INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int size, int device) {
  snprintf(name, size, "Weft test double %d", device);
  return SUCCESS;
}

CUresult cuDeviceGetUuid_v2(char *uuid, int device) {
  memcpy(uuid, "weft-cuda-double", 16);
  uuid[15] = (char)device;
  return SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  *bytes = DEVICE_BYTES;
  return SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(struct context **out, int device) {
  pthread_mutex_lock(&lock);
  contexts[device].device = device;
  contexts[device].retained++;
  *out = &contexts[device];
  pthread_mutex_unlock(&lock);
  double_count("retained contexts", 1);
  return SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(int device) {
  pthread_mutex_lock(&lock);
  int retained = contexts[device].retained;
  if (retained == 0) {
    double_violation("a context of device %d released once too often", device);
  } else {
    contexts[device].retained--;
    double_count("retained contexts", -1);
  }
  pthread_mutex_unlock(&lock);
  return retained == 0 ? INVALID_CONTEXT : SUCCESS;
}

CUresult cuCtxSetCurrent(struct context *context) {
  if (context != NULL && context->retained == 0) {
    double_violation("cuCtxSetCurrent with a context that was released");
    return INVALID_CONTEXT;
  }
  current = context;
  return SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return check_context("cuCtxGetStreamPriorityRange");
}
