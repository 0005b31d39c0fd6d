/*
 * A test double of libcuda: 8 devices whose memory is host memory and whose streams are threads. It
 * reports violations that the driver accepts silently: unrecorded events, foreign contexts, memory
 * freed while in use, and dead handles. Tests read the violations.
 */
#define _GNU_SOURCE
#include "gpu_double.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICES 8

/* The compiler can set a smaller number. */
#ifndef WEFT_DOUBLE_DEVICES
#define WEFT_DOUBLE_DEVICES DEVICES
#endif

/* The compiler can set the result of cuInit, such as 803 for the library of another driver. */
#ifndef WEFT_DOUBLE_INIT
#define WEFT_DOUBLE_INIT 0
#endif
#define GRANULARITY ((size_t)2 << 20)
#define MAX_IMPORTERS 64
#define DEVICE_BYTES ((size_t)2 << 30)
#define MAX_TEXT 8192

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  MAP_FAILURE = 205,
  INVALID_HANDLE = 400,
  NOT_READY = 600,
  PEER_ACCESS_ALREADY_ENABLED = 704,
  ILLEGAL_STATE = 401
};

typedef int CUresult;

struct context {
  int device;
  int retained;
  int lost;
};

enum memory_kind { PLAIN, PINNED, VIRTUAL, IMPORTED };

/* Stored after the bytes of plain device memory, for all processes that map it. */
struct importers {
  int pids[MAX_IMPORTERS];
};

/* Memory of cuMemCreate: exists as long as its handle or a mapping. */
struct physical {
  int file;
  size_t bytes;
  int device;
  int handle_types;
  int references;
  struct physical *next;
};

struct allocation {
  char *start;
  size_t bytes;
  int device; /* -1: pinned host memory */
  int uses;
  int graphs; /* graphs that refer to it. */
  enum memory_kind kind;
  int file;
  int references;              /* references of an import. */
  unsigned long inode;         /* of plain and imported memory. */
  struct importers *importers; /* of plain and imported memory. */
  struct physical *physical;   /* of virtual memory. */
  int accessible;
  struct allocation *next;
};

struct reservation {
  char *start;
  size_t bytes;
  struct reservation *next;
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
  int of_thread; /* ends with the thread whose default stream it is. */
  pthread_t thread;
  pthread_cond_t awake; /* signalled when the thread may have work, or has to end. */
  struct nodes *capture; /* takes enqueued work during a capture. */
  struct work *first;
  struct work **last;
  struct stream *next;
};

/*
 * One lock for everything: a double must be correct, not fast. Each stream has a condition of its
 * own, because tests have dozens of streams, and few of them have work.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct context contexts[DEVICES];
static struct allocation *allocations;
static struct physical *physicals;
static struct reservation *reservations;
static struct event *events;
static struct stream *streams;
static size_t used[DEVICES];
static int initialized;
static int visible = WEFT_DOUBLE_DEVICES;
static int driver_version = 12080;
static int paused;
static int stalling;
static int stalled;
static int graph_launches;
static int held = -1;
static int unreachable;
static int fewer_events;
static int peer_access[DEVICES][DEVICES];
static int pageable_copies;
static int host_copies;
static long long device_bytes_copied;
static long long bytes_to_host;
static int violations;
static char violation_text[MAX_TEXT];
static __thread struct context *current;

/* Set on the thread of a stream. */

#define MAX_COUNTS 32

static struct { const char *kind; int live; } counts[MAX_COUNTS];

/* ---- functions for tests and the other double ---- */

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
  snprintf(violation_text + length, MAX_TEXT - length, "%s\n", line);
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
  for (int i = 0; i < MAX_COUNTS; i++) {
    if (counts[i].kind == NULL || strcmp(counts[i].kind, kind) == 0) {
      counts[i].kind = kind;
      counts[i].live += delta;
      break;
    }
  }
  pthread_mutex_unlock(&own);
}

/* Writes the live handles as text; returns their number. */
int cudaDoubleLive(char *text, int size) {
  int sum = 0;
  text[0] = 0;
  for (int i = 0; i < MAX_COUNTS && counts[i].kind != NULL; i++) {
    if (counts[i].live != 0) {
      size_t length = strlen(text);
      snprintf(text + length, size - length, "%s: %d\n", counts[i].kind, counts[i].live);
      sum += counts[i].live;
    }
  }
  return sum;
}

/* While paused, no stream starts another piece of work. */
void cudaDoublePause(int pause) {
  pthread_mutex_lock(&lock);
  paused = pause;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* As cudaDoublePause, for one device; -1 for none. */
void cudaDoubleHold(int device) {
  pthread_mutex_lock(&lock);
  held = device;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* Sets whether devices cannot access each other's memory. */
void cudaDoubleUnreachable(int apart) { unreachable = apart; }

/* Makes the next event creations fail. */
void cudaDoubleFailEvents(int events) { fewer_events = events; }

/* While stalling, calls that allocate or retain a context do not return. */
void cudaDoubleStall(int stall) {
  pthread_mutex_lock(&lock);
  stalling = stall;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* The number of stalled calls. */
int cudaDoubleStalled(void) {
  pthread_mutex_lock(&lock);
  int count = stalled;
  pthread_mutex_unlock(&lock);
  return count;
}

static void stall_if_told_locked(void) {
  stalled++;
  while (stalling) {
    pthread_cond_wait(&changed, &lock);
  }
  stalled--;
}

/* Copies from and to host memory that is not pinned, since the last call. */
int cudaDoublePageableCopies(void) {
  pthread_mutex_lock(&lock);
  int count = pageable_copies;
  pageable_copies = 0;
  pthread_mutex_unlock(&lock);
  return count;
}

/* Copies between host and device, since the last call. */
int cudaDoubleHostCopies(void) { return __atomic_exchange_n(&host_copies, 0, __ATOMIC_SEQ_CST); }

/* Bytes of copies within and between devices, since the last call. */
long long cudaDoubleDeviceBytesCopied(void) {
  return __atomic_exchange_n(&device_bytes_copied, 0, __ATOMIC_SEQ_CST);
}

/* Bytes of copies from devices to the host, since the last call. */
long long cudaDoubleBytesToHost(void) {
  return __atomic_exchange_n(&bytes_to_host, 0, __ATOMIC_SEQ_CST);
}

/* Makes all calls of a device fail with this code, or work again with 0. */
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
    if (each->accessible && at >= each->start && bytes <= each->bytes &&
        at + bytes <= each->start + each->bytes) {
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

static struct stream *add_stream_locked(int priority);

/* Ends the default streams of a thread that has ended, after their work. */
static void end_streams_of_thread(void *argument) {
  struct stream **mine = argument;
  pthread_mutex_lock(&lock);
  for (int device = 0; device < DEVICES; device++) {
    if (mine[device] != NULL) {
      mine[device]->closing = 1;
      pthread_cond_signal(&mine[device]->awake);
    }
  }
  pthread_mutex_unlock(&lock);
  free(mine);
}

static pthread_key_t streams_of_thread;

static void make_key(void) { pthread_key_create(&streams_of_thread, end_streams_of_thread); }

static struct stream *of_this_thread_locked(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_key);
  struct stream **mine = pthread_getspecific(streams_of_thread);
  if (mine == NULL) {
    mine = calloc(DEVICES, sizeof *mine);
    pthread_setspecific(streams_of_thread, mine);
  }
  if (mine[current->device] == NULL) {
    mine[current->device] = add_stream_locked(0);
    mine[current->device]->of_thread = 1;
    pthread_detach(mine[current->device]->thread);
  }
  return mine[current->device];
}

/*
 * Handles 0 and 1 are the context's legacy stream, for which streams of flag 1 do not wait. Handle
 * 2 is the default stream of the calling thread.
 */
static struct stream *resolved_locked(struct stream *stream) {
  static struct stream *legacy[DEVICES];
  if ((uintptr_t)stream > 2 || current == NULL) {
    return stream;
  }
  if ((uintptr_t)stream == 2) {
    return of_this_thread_locked();
  }
  if (legacy[current->device] == NULL) {
    legacy[current->device] = add_stream_locked(0);
  }
  return legacy[current->device];
}

static CUresult check_stream(struct stream *stream, const char *caller) {
  CUresult result = check_context(caller);
  if (result != SUCCESS) {
    return result;
  }
  if (!is_living_stream(stream)) {
    double_violation("%s on a stream that does not exist", caller);
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
    double_violation("%s on an event that does not exist", caller);
    return INVALID_HANDLE;
  }
  return SUCCESS;
}

int double_stream_device(void *stream, const char *caller) {
  pthread_mutex_lock(&lock);
  struct stream *resolved = resolved_locked(stream);
  CUresult result = check_stream(resolved, caller);
  pthread_mutex_unlock(&lock);
  return result == SUCCESS ? resolved->device : -1;
}

/* ---- streams ---- */

static void remove_stream_locked(struct stream *stream) {
  for (struct stream **each = &streams; *each != NULL; each = &(*each)->next) {
    if (*each == stream) {
      *each = stream->next;
      return;
    }
  }
}

static void free_stream(struct stream *stream) {
  pthread_cond_destroy(&stream->awake);
  free(stream);
}

static void *stream_loop(void *argument) {
  struct stream *stream = argument;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (stream->first == NULL && !stream->closing) {
      pthread_cond_wait(&stream->awake, &lock);
    }
    while ((paused || held == stream->device) && stream->first != NULL) {
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
  }
  if (stream->of_thread) {
    remove_stream_locked(stream);
    free_stream(stream);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static void enqueue_work_locked(struct stream *stream, const struct double_work *kind,
                                void *argument, const struct double_range *ranges, int count) {
  struct work *work = calloc(1, sizeof *work);
  if (kind->launch != NULL) {
    kind->launch(argument);
  }
  work->run = kind->run;
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
  pthread_cond_signal(&stream->awake);
}

#include "cuda_graphs.h"

static void enqueue_or_capture_locked(struct stream *stream, const struct double_work *work,
                                      void *argument, const struct double_range *ranges,
                                      int count) {
  if (stream->capture != NULL) {
    capture_locked(stream->capture, work, argument, ranges, count);
  } else {
    enqueue_work_locked(stream, work, argument, ranges, count);
  }
}

static void enqueue_locked(struct stream *stream, void (*run)(void *), void *argument,
                           const struct double_range *ranges, int count) {
  struct double_work work = {run, NULL, NULL};
  enqueue_or_capture_locked(stream, &work, argument, ranges, count);
}

void double_enqueue(void *stream, const struct double_work *work, void *argument,
                    const struct double_range *ranges, int count) {
  pthread_mutex_lock(&lock);
  enqueue_or_capture_locked(resolved_locked(stream), work, argument, ranges, count);
  pthread_mutex_unlock(&lock);
}

static struct stream *add_stream_locked(int priority) {
  struct stream *stream = calloc(1, sizeof *stream);
  stream->device = current->device;
  stream->priority = priority;
  stream->last = &stream->first;
  pthread_cond_init(&stream->awake, NULL);
  stream->next = streams;
  streams = stream;
  pthread_create(&stream->thread, NULL, stream_loop, stream);
  return stream;
}

CUresult cuStreamCreateWithPriority(struct stream **out, unsigned flags, int priority) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuStreamCreateWithPriority");
  if (result == SUCCESS && (flags != 1 || priority > 0 || priority < -5)) {
    double_violation("a stream with flags %u and priority %d", flags, priority);
    result = INVALID_VALUE;
  }
  if (result == SUCCESS) {
    *out = add_stream_locked(priority);
    double_count("streams", 1);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* For programs that use JCuda. */
CUresult cuStreamCreate(struct stream **out, unsigned flags) {
  return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy_v2(struct stream *stream) {
  pthread_mutex_lock(&lock);
  CUresult result = check_stream(stream, "cuStreamDestroy");
  if (result == INVALID_HANDLE || result == INVALID_CONTEXT) {
    pthread_mutex_unlock(&lock);
    return result;
  }
  if (stream->capture != NULL) {
    double_violation("cuStreamDestroy of a stream that captures a graph");
  }
  if (stream->pending > 0) {
    double_violation("cuStreamDestroy with %d pieces of work in flight", stream->pending);
  }
  stream->closing = 1;
  remove_stream_locked(stream);
  pthread_cond_signal(&stream->awake);
  pthread_mutex_unlock(&lock);
  pthread_join(stream->thread, NULL);
  free_stream(stream);
  double_count("streams", -1);
  return result;
}

CUresult cuStreamQuery(struct stream *stream) {
  pthread_mutex_lock(&lock);
  stream = resolved_locked(stream);
  CUresult result = check_stream(stream, "cuStreamQuery");
  if (result == SUCCESS) {
    result = check_not_captured(stream->capture, "cuStreamQuery");
  }
  if (result == SUCCESS && stream->pending > 0) {
    result = NOT_READY;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* For programs that use JCuda. */
CUresult cuStreamSynchronize(struct stream *stream) {
  CUresult result = cuStreamQuery(stream);
  while (result == NOT_READY) {
    usleep(100);
    result = cuStreamQuery(stream);
  }
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
  if (result == SUCCESS && fewer_events > 0) {
    fewer_events--;
    result = OUT_OF_MEMORY;
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
  stream = resolved_locked(stream);
  CUresult result = check_stream(stream, "cuEventRecord");
  if (result == SUCCESS) {
    result = check_event(event, "cuEventRecord");
  }
  if (result == SUCCESS) {
    result = check_not_captured(stream->capture, "cuEventRecord");
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
  stream = resolved_locked(stream);
  CUresult result = check_stream(stream, "cuStreamWaitEvent");
  if (result == SUCCESS) {
    result = check_event(event, "cuStreamWaitEvent");
  }
  if (result == SUCCESS && event->recorded == 0) {
    double_violation("cuStreamWaitEvent on an event that was never recorded");
    result = INVALID_HANDLE;
  }
  if (result == SUCCESS) {
    result = check_not_captured(stream->capture, "cuStreamWaitEvent");
  }
  if (result == SUCCESS) {
    enqueue_locked(stream, run_wait, mark_locked(event), NULL, 0);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- memory ---- */

static struct allocation *add_allocation(char *start, size_t bytes, int device,
                                         enum memory_kind kind) {
  struct allocation *made = calloc(1, sizeof *made);
  made->start = start;
  made->bytes = bytes;
  made->device = device;
  made->kind = kind;
  made->file = -1;
  made->accessible = 1;
  made->next = allocations;
  allocations = made;
  return made;
}

/* Ends the process with a message, after an error that a double cannot handle. */
static void give_up(const char *what) {
  perror(what);
  abort();
}

static size_t whole_pages(size_t bytes) { return (bytes + 4095) & ~(size_t)4095; }

static char *map_file(int file, size_t bytes) {
  char *start = mmap(NULL, whole_pages(bytes) + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (start == MAP_FAILED) {
    give_up("the CUDA double cannot map memory");
  }
  return start;
}

static void add_plain(int file, char *start, size_t bytes, int device, enum memory_kind kind) {
  struct stat about;
  fstat(file, &about);
  struct allocation *made = add_allocation(start, bytes, device, kind);
  made->file = file;
  made->inode = about.st_ino;
  made->references = 1;
  made->importers = (struct importers *)(start + whole_pages(bytes));
}

/*
 * Creates a file without a name, which other processes open through this process. It ends with this
 * process.
 */
static int make_file(size_t bytes) {
  int file = memfd_create("weft-cuda-double", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, bytes) != 0) {
    give_up("the CUDA double cannot create memory");
  }
  return file;
}

static CUresult allocate(void **out, size_t bytes, int device, const char *caller) {
  pthread_mutex_lock(&lock);
  stall_if_told_locked();
  CUresult result = check_context(caller);
  if (result == SUCCESS) {
    result = check_no_capture(caller);
  }
  if (result == SUCCESS && bytes == 0) {
    result = INVALID_VALUE;
  }
  if (result == SUCCESS && device >= 0 && used[device] + bytes > DEVICE_BYTES) {
    result = OUT_OF_MEMORY;
  }
  if (result == SUCCESS && device < 0) {
    if (posix_memalign(out, 4096, bytes) != 0) {
      give_up("the CUDA double cannot allocate pinned memory");
    }
    add_allocation(*out, bytes, device, PINNED);
    double_count("pinned buffers", 1);
  } else if (result == SUCCESS) {
    int file = make_file(whole_pages(bytes) + 4096);
    char *start = map_file(file, bytes);
    add_plain(file, start, bytes, device, PLAIN);
    used[device] += bytes;
    double_count("device allocations", 1);
    *out = start;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static struct allocation **place_of(const void *start) {
  struct allocation **each = &allocations;
  while (*each != NULL && (*each)->start != start) {
    each = &(*each)->next;
  }
  return each;
}

/* Returns a living process that maps the memory, or 0. */
static int living_importer(struct allocation *allocation) {
  for (int i = 0; i < MAX_IMPORTERS; i++) {
    int pid = allocation->importers->pids[i];
    if (pid != 0 && (kill(pid, 0) == 0 || errno == EPERM)) {
      return pid;
    }
  }
  return 0;
}

static void note_freed(const void *start, size_t bytes);

static void free_allocation(struct allocation *found) {
  note_freed(found->start, found->bytes);
  memset(found->start, 0xdb, found->bytes < 4096 ? found->bytes : 4096);
  if (found->kind == PINNED) {
    free(found->start);
  } else {
    munmap(found->start, whole_pages(found->bytes) + 4096);
    close(found->file);
  }
  free(found);
}

static CUresult check_unused(struct allocation *found, const char *caller) {
  if (found->uses > 0) {
    double_violation("%s of %zu bytes while %d pieces of work use them", caller, found->bytes,
                     found->uses);
    return ILLEGAL_STATE;
  }
  if (found->graphs > 0) {
    double_violation("%s of %zu bytes that a graph refers to", caller, found->bytes);
    return ILLEGAL_STATE;
  }
  return SUCCESS;
}

static CUresult release(void *start, enum memory_kind kind, const char *caller) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context(caller);
  if (result == INVALID_CONTEXT || result == NOT_INITIALIZED ||
      check_no_capture(caller) != SUCCESS) {
    pthread_mutex_unlock(&lock);
    return result == SUCCESS ? CAPTURE_UNSUPPORTED : result;
  }
  struct allocation **each = place_of(start);
  struct allocation *found = *each;
  if (found == NULL || found->kind != kind) {
    double_violation("%s of memory that does not exist", caller);
    result = INVALID_VALUE;
  } else if (check_unused(found, caller) != SUCCESS) {
    result = ILLEGAL_STATE;
  } else {
    if (kind == PLAIN && living_importer(found) != 0) {
      double_violation("%s of %zu bytes while process %d maps them", caller, found->bytes,
                       living_importer(found));
    }
    *each = found->next;
    if (kind == PLAIN) {
      used[found->device] -= found->bytes;
    }
    double_count(kind == PLAIN ? "device allocations" : "pinned buffers", -1);
    free_allocation(found);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemAlloc_v2(void **out, size_t bytes) {
  return allocate(out, bytes, double_current_device(), "cuMemAlloc");
}

CUresult cuMemFree_v2(void *start) { return release(start, PLAIN, "cuMemFree"); }

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
  if (flags != 1) {
    double_violation("pinned memory for one context only (flags %u)", flags);
  }
  return allocate(out, bytes, -1, "cuMemHostAlloc");
}

CUresult cuMemFreeHost(void *start) { return release(start, PINNED, "cuMemFreeHost"); }

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  CUresult result = check_context("cuMemGetInfo");
  if (result == SUCCESS) {
    *total = DEVICE_BYTES;
    *free_bytes = DEVICE_BYTES - used[current->device];
  }
  return result;
}

/* ---- memory of other processes ---- */

struct ipc_handle {
  int pid;
  int file;
  int device;
  size_t bytes;
  unsigned long inode;
  char unused[32];
};

_Static_assert(sizeof(struct ipc_handle) == 64, "as CUipcMemHandle");

CUresult cuIpcGetMemHandle(struct ipc_handle *handle, void *pointer) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuIpcGetMemHandle");
  struct allocation *found = covering(pointer, 1);
  if (result == SUCCESS && (found == NULL || found->kind != PLAIN)) {
    double_violation("cuIpcGetMemHandle of memory that is not of cuMemAlloc");
    result = INVALID_VALUE;
  }
  if (result == SUCCESS) {
    memset(handle, 0x33, sizeof *handle);
    handle->pid = getpid();
    handle->file = found->file;
    handle->device = found->device;
    handle->bytes = found->bytes;
    handle->inode = found->inode;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static void note_importer(struct importers *importers, int from, int to) {
  for (int i = 0; i < MAX_IMPORTERS; i++) {
    int expected = from;
    if (__atomic_compare_exchange_n(&importers->pids[i], &expected, to, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return;
    }
  }
}

static CUresult open_import_locked(void **out, struct ipc_handle handle) {
  for (struct allocation *each = allocations; each != NULL; each = each->next) {
    if (each->kind == IMPORTED && each->inode == handle.inode) {
      each->references++;
      *out = each->start;
      return SUCCESS;
    }
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.pid, handle.file);
  int file = open(path, O_RDWR | O_CLOEXEC);
  struct stat about;
  if (file < 0 || fstat(file, &about) != 0 || about.st_ino != handle.inode) {
    if (file >= 0) {
      close(file);
    }
    return MAP_FAILURE;
  }
  *out = map_file(file, handle.bytes);
  add_plain(file, *out, handle.bytes, handle.device, IMPORTED);
  note_importer(allocations->importers, 0, getpid());
  double_count("imported memories", 1);
  return SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(void **out, struct ipc_handle handle, unsigned flags) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuIpcOpenMemHandle");
  if (result == SUCCESS) {
    result = check_no_capture("cuIpcOpenMemHandle");
  }
  if (result == SUCCESS && (flags != 1 || handle.unused[31] != 0x33)) {
    double_violation("cuIpcOpenMemHandle with flags %u or a broken handle", flags);
    result = INVALID_VALUE;
  }
  if (result == SUCCESS && handle.pid == getpid()) {
    double_violation("cuIpcOpenMemHandle in the process that owns the memory");
    result = INVALID_CONTEXT;
  }
  if (result == SUCCESS) {
    result = open_import_locked(out, handle);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuIpcCloseMemHandle(void *start) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuIpcCloseMemHandle");
  struct allocation **each = place_of(start);
  struct allocation *found = *each;
  if (result == SUCCESS) {
    result = check_no_capture("cuIpcCloseMemHandle");
  }
  if (result != SUCCESS) {
    pthread_mutex_unlock(&lock);
    return result;
  }
  if (found == NULL || found->kind != IMPORTED) {
    double_violation("cuIpcCloseMemHandle of memory that is not imported");
    result = INVALID_VALUE;
  } else if (--found->references == 0) {
    result = check_unused(found, "cuIpcCloseMemHandle");
    *each = found->next;
    note_importer(found->importers, getpid(), 0);
    munmap(found->start, whole_pages(found->bytes) + 4096);
    close(found->file);
    free(found);
    double_count("imported memories", -1);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemGetAddressRange_v2(void **base, size_t *bytes, void *pointer) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuMemGetAddressRange");
  struct allocation *found = covering(pointer, 1);
  if (result == SUCCESS && (found == NULL || found->device < 0)) {
    result = INVALID_VALUE;
  }
  if (result == SUCCESS) {
    *base = found->start;
    *bytes = found->bytes;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- virtual memory ---- */

struct location {
  int type;
  int id;
};

struct properties {
  int type;
  int handle_types;
  struct location location;
  void *unused;
  unsigned char flags[8];
};

struct access {
  struct location location;
  int flags;
};

_Static_assert(sizeof(struct properties) == 32, "as CUmemAllocationProp");

static CUresult check_properties(const struct properties *properties, const char *caller) {
  CUresult result = check_context(caller);
  if (result == SUCCESS && (properties->type != 1 || (properties->handle_types & ~1) != 0 ||
                            properties->location.type != 1 || properties->flags[0] != 0 ||
                            properties->flags[1] > 1 || properties->flags[2] != 0 ||
                            properties->location.id < 0 || properties->location.id >= DEVICES)) {
    double_violation("%s of type %d at %d, %d", caller, properties->type,
                     properties->location.type, properties->location.id);
    result = INVALID_VALUE;
  }
  return result;
}

static CUresult check_size(size_t bytes, const char *caller) {
  if (bytes == 0 || bytes % GRANULARITY != 0) {
    double_violation("%s of %zu bytes, which are not whole granules", caller, bytes);
    return INVALID_VALUE;
  }
  return SUCCESS;
}

static char *reserve_aligned(size_t bytes, size_t alignment) {
  char *start =
      mmap(NULL, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    return NULL;
  }
  size_t before = -(size_t)start % alignment;
  if (before > 0) {
    munmap(start, before);
  }
  munmap(start + before + bytes, alignment - before);
  return start + before;
}

CUresult cuMemAddressReserve(void **out, size_t bytes, size_t alignment, void *hint,
                             unsigned long long flags) {
  if ((alignment & (alignment - 1)) != 0 || hint != NULL || flags != 0 ||
      check_size(bytes, "cuMemAddressReserve") != SUCCESS) {
    return INVALID_VALUE;
  }
  char *start = reserve_aligned(bytes, alignment < GRANULARITY ? GRANULARITY : alignment);
  if (start == NULL) {
    return OUT_OF_MEMORY;
  }
  struct reservation *made = calloc(1, sizeof *made);
  pthread_mutex_lock(&lock);
  *made = (struct reservation){start, bytes, reservations};
  reservations = made;
  pthread_mutex_unlock(&lock);
  double_count("address reservations", 1);
  *out = start;
  return SUCCESS;
}

CUresult cuMemAddressFree(void *start, size_t bytes) {
  pthread_mutex_lock(&lock);
  struct reservation **each = &reservations;
  while (*each != NULL && ((*each)->start != start || (*each)->bytes != bytes)) {
    each = &(*each)->next;
  }
  struct reservation *found = *each;
  CUresult result = found == NULL ? INVALID_VALUE : SUCCESS;
  if (found == NULL || *place_of(start) != NULL) {
    double_violation("cuMemAddressFree of addresses that are not reserved, or still mapped");
  }
  if (found != NULL) {
    *each = found->next;
    munmap(start, bytes);
    free(found);
    double_count("address reservations", -1);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemCreate(struct physical **out, size_t bytes, const struct properties *properties,
                     unsigned long long flags) {
  pthread_mutex_lock(&lock);
  stall_if_told_locked();
  CUresult result = check_properties(properties, "cuMemCreate");
  if (result == SUCCESS && (flags != 0 || check_size(bytes, "cuMemCreate") != SUCCESS)) {
    result = INVALID_VALUE;
  }
  int device = properties->location.id;
  if (result == SUCCESS && used[device] + bytes > DEVICE_BYTES) {
    result = OUT_OF_MEMORY;
  }
  if (result == SUCCESS) {
    struct physical *made = calloc(1, sizeof *made);
    *made = (struct physical){make_file(bytes), bytes, device, properties->handle_types, 1,
                              physicals};
    physicals = made;
    used[device] += bytes;
    double_count("memory handles", 1);
    *out = made;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static struct physical **place_of_physical(struct physical *physical) {
  struct physical **each = &physicals;
  while (*each != NULL && *each != physical) {
    each = &(*each)->next;
  }
  return each;
}

static void release_physical_locked(struct physical *physical) {
  if (--physical->references == 0) {
    struct physical **place = place_of_physical(physical);
    *place = physical->next;
    used[physical->device] -= physical->bytes;
    close(physical->file);
    free(physical);
    double_count("memory handles", -1);
  }
}

CUresult cuMemRelease(struct physical *physical) {
  pthread_mutex_lock(&lock);
  CUresult result = SUCCESS;
  if (*place_of_physical(physical) == NULL) {
    double_violation("cuMemRelease of a handle that does not exist");
    result = INVALID_VALUE;
  } else {
    release_physical_locked(physical);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

static int is_reserved(const char *start, size_t bytes) {
  for (struct reservation *each = reservations; each != NULL; each = each->next) {
    if (start >= each->start && start + bytes <= each->start + each->bytes) {
      return 1;
    }
  }
  return 0;
}

CUresult cuMemMap(void *start, size_t bytes, size_t offset, struct physical *physical,
                  unsigned long long flags) {
  pthread_mutex_lock(&lock);
  CUresult result = SUCCESS;
  if (!is_reserved(start, bytes) || offset != 0 || flags != 0 ||
      *place_of_physical(physical) == NULL || physical->bytes != bytes) {
    double_violation("cuMemMap of %zu bytes that are not reserved, or not in the handle", bytes);
    result = INVALID_VALUE;
  } else {
    mmap(start, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->file, 0);
    struct allocation *made = add_allocation(start, bytes, physical->device, VIRTUAL);
    made->physical = physical;
    made->accessible = 0;
    physical->references++;
    double_count("mappings", 1);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemSetAccess(void *start, size_t bytes, const struct access *access, size_t count) {
  pthread_mutex_lock(&lock);
  struct allocation *found = *place_of(start);
  CUresult result = SUCCESS;
  if (found == NULL || found->kind != VIRTUAL || found->bytes != bytes || count != 1 ||
      access->location.type != 1 || access->location.id != found->device || access->flags != 3) {
    double_violation("cuMemSetAccess of %zu bytes that are not mapped, or for another", bytes);
    result = INVALID_VALUE;
  } else {
    mprotect(start, bytes, PROT_READ | PROT_WRITE);
    found->accessible = 1;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuMemUnmap(void *start, size_t bytes) {
  pthread_mutex_lock(&lock);
  struct allocation **each = place_of(start);
  struct allocation *found = *each;
  CUresult result = SUCCESS;
  if (found == NULL || found->kind != VIRTUAL || found->bytes != bytes) {
    double_violation("cuMemUnmap of %zu bytes that are not mapped", bytes);
    result = INVALID_VALUE;
  } else if (check_unused(found, "cuMemUnmap") != SUCCESS) {
    result = ILLEGAL_STATE;
  } else {
    *each = found->next;
    mmap(start, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    release_physical_locked(found->physical);
    free(found);
    double_count("mappings", -1);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

int double_hold_virtual(const void *start, size_t bytes, int delta) {
  pthread_mutex_lock(&lock);
  struct allocation *found = covering(start, bytes);
  int is_virtual = found != NULL && found->kind == VIRTUAL;
  if (is_virtual) {
    found->uses += delta;
  }
  pthread_mutex_unlock(&lock);
  return is_virtual;
}

int double_is_exportable(const void *start) {
  pthread_mutex_lock(&lock);
  struct allocation *found = covering(start, 1);
  int types = found != NULL && found->kind == VIRTUAL ? found->physical->handle_types : 0;
  pthread_mutex_unlock(&lock);
  return types & 1;
}

/* ---- copies ---- */

struct copy {
  void *to;
  const void *from;
  size_t bytes;
  int *done; /* or NULL if no thread waits. */
};

static void run_copy(void *argument) {
  struct copy *copy = argument;
  memmove(copy->to, copy->from, copy->bytes);
  if (copy->done != NULL) {
    pthread_mutex_lock(&lock);
    *copy->done = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
  free(copy);
}

/*
 * Waits for the stream on the calling thread, as the driver does for host memory that is not
 * pinned.
 */
static void await_copy_locked(int *done) {
  pageable_copies++;
  while (!*done) {
    pthread_cond_wait(&changed, &lock);
  }
}

static CUresult copy_async(void *to, const void *from, size_t bytes, struct stream *stream,
                           int to_device, int from_device, const char *caller) {
  pthread_mutex_lock(&lock);
  stream = resolved_locked(stream);
  CUresult result = check_stream(stream, caller);
  struct double_range ranges[2] = {{to, bytes}, {from, bytes}};
  int pageable = 0;
  int done = 0;
  for (int i = 0; result == SUCCESS && i < 2; i++) {
    struct allocation *found = covering(ranges[i].start, bytes);
    int on_device = found != NULL && found->device >= 0;
    pageable |= found == NULL;
    if (on_device != (i == 0 ? to_device : from_device)) {
      double_violation("%s: %zu bytes are %son a device", caller, bytes, on_device ? "" : "not ");
      result = INVALID_VALUE;
    }
  }
  if (result == SUCCESS && pageable) {
    result = check_not_captured(stream->capture, caller);
  }
  if (result == SUCCESS) {
    struct copy *copy = malloc(sizeof *copy);
    *copy = (struct copy){to, from, bytes, pageable ? &done : NULL};
    enqueue_locked(stream, run_copy, copy, ranges, 2);
    host_copies += to_device != from_device;
    device_bytes_copied += to_device && from_device ? (long long)bytes : 0;
    bytes_to_host += from_device && !to_device ? (long long)bytes : 0;
    if (pageable) {
      await_copy_locked(&done);
    }
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

struct fill {
  void *to;
  int value;
  size_t bytes;
};

static void run_fill(void *argument) {
  struct fill *fill = argument;
  memset(fill->to, fill->value, fill->bytes);
  free(fill);
}

CUresult cuMemsetD8Async(void *to, unsigned char value, size_t bytes, struct stream *stream) {
  pthread_mutex_lock(&lock);
  stream = resolved_locked(stream);
  CUresult result = check_stream(stream, "cuMemsetD8Async");
  struct double_range range = {to, bytes};
  struct allocation *found = covering(to, bytes);
  if (result == SUCCESS && (found == NULL || found->device != stream->device)) {
    double_violation("cuMemsetD8Async: %zu bytes are not on the device", bytes);
    result = INVALID_VALUE;
  }
  if (result == SUCCESS) {
    struct fill *fill = malloc(sizeof *fill);
    *fill = (struct fill){to, value, bytes};
    enqueue_locked(stream, run_fill, fill, &range, 1);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuPointerGetAttribute(void *out, int attribute, const void *pointer) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuPointerGetAttribute");
  struct allocation *found = covering(pointer, 1);
  if (result == SUCCESS && (found == NULL || (attribute != 2 && attribute != 9))) {
    result = INVALID_VALUE;
  }
  if (result == SUCCESS && attribute == 2) {
    *(unsigned *)out = found->device >= 0 ? 2 : 1;
  } else if (result == SUCCESS) {
    *(int *)out = found->device >= 0 ? found->device : 0;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- devices and contexts ---- */

CUresult cuInit(unsigned flags) {
  (void)flags;
  if (WEFT_DOUBLE_INIT != SUCCESS) {
    return WEFT_DOUBLE_INIT;
  }
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
    case 218: *name = "CUDA_ERROR_INVALID_PTX"; break;
    case 222: *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; break;
    case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case INVALID_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
    case 803: *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; break;
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
  stall_if_told_locked();
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
    for (int peer = 0; contexts[device].retained == 0 && peer < DEVICES; peer++) {
      peer_access[device][peer] = 0;
      peer_access[peer][device] = 0;
    }
  }
  pthread_mutex_unlock(&lock);
  return retained == 0 ? INVALID_CONTEXT : SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = device != peer && !unreachable;
  return device >= 0 && device < visible && peer >= 0 && peer < visible ? SUCCESS : INVALID_DEVICE;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
  if (attribute != 132) {
    double_violation("cuDeviceGetAttribute of %d, which the double does not know", attribute);
    return INVALID_VALUE;
  }
  /* Every second device has multicast, as if it were at a switch. */
  *value = device % 2 == 0;
  return device >= 0 && device < visible ? SUCCESS : INVALID_DEVICE;
}

CUresult cuCtxEnablePeerAccess(struct context *peer, unsigned flags) {
  pthread_mutex_lock(&lock);
  CUresult result = check_context("cuCtxEnablePeerAccess");
  if (result == SUCCESS && (flags != 0 || peer->retained == 0 || peer == current)) {
    double_violation("cuCtxEnablePeerAccess of a context that is not retained, or its own");
    result = INVALID_CONTEXT;
  }
  if (result == SUCCESS && peer_access[current->device][peer->device]) {
    result = PEER_ACCESS_ALREADY_ENABLED;
  }
  if (result == SUCCESS) {
    peer_access[current->device][peer->device] = 1;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUresult cuCtxSetCurrent(struct context *context) {
  if (context != NULL && context->retained == 0) {
    double_violation("cuCtxSetCurrent with a context that was released");
    return INVALID_CONTEXT;
  }
  current = context;
  return SUCCESS;
}

/* For programs that use JCuda. */
CUresult cuCtxGetCurrent(struct context **out) {
  *out = current;
  return SUCCESS;
}

/* For processes that read feeds. */
CUresult cuCtxSynchronize(void) {
  CUresult result = check_context("cuCtxSynchronize");
  pthread_mutex_lock(&lock);
  /* In each mode of the thread. */
  if (result == SUCCESS && break_captures_locked(1) > 0) {
    double_violation("cuCtxSynchronize while a stream of the context captures a graph");
    result = CAPTURE_UNSUPPORTED;
  }
  pthread_mutex_unlock(&lock);
  int working = result == SUCCESS;
  while (working) {
    working = 0;
    pthread_mutex_lock(&lock);
    for (struct stream *each = streams; each != NULL; each = each->next) {
      working |= each->device == current->device && each->pending > 0;
    }
    pthread_mutex_unlock(&lock);
    if (working) {
      usleep(100);
    }
  }
  return result;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return check_context("cuCtxGetStreamPriorityRange");
}

/* ---- kernels ---- */

#include "cuda_modules.h"
