/*
 * A test double of libnccl over the double of libcuda. Ranks are threads of one or several
 * processes. They meet in a segment of shared memory and move all data through one slot per ordered
 * pair. Like NCCL, it waits without end if ranks do not match, until ncclCommAbort. Unlike NCCL, it
 * reports violations of rules: communicators used from two threads or before they are ready,
 * operations in different orders, memory that is not on the communicator's device.
 */
#define _GNU_SOURCE
#include "gpu_double.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_RANKS 16
#define SLOT_BYTES 32768
#define MAX_TASKS (DOUBLE_MOST_RANGES / 2)

#ifdef WEFT_DOUBLE_OLD
#define VERSION 21212
const char double_banner[] = "NCCL version 2.12.12+double";
#elif defined(WEFT_DOUBLE_WITHOUT_WINDOWS)
#define VERSION 22105
const char double_banner[] = "NCCL version 2.21.5+double";
#elif defined(WEFT_DOUBLE_WITHOUT_SHARING)
#define VERSION 22803
const char double_banner[] = "NCCL version 2.28.3+double";
#else
#define VERSION 23007
const char double_banner[] = "NCCL version 2.30.7+double";
#endif

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
} ncclResult_t;

typedef struct { char internal[128]; } ncclUniqueId;

struct config {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
  int cluster_size;
  int min_blocks;
  int max_blocks;
  const char *net_name;
  int split_share;
};

/* One chunk in transfer from one rank to another. */
struct slot {
  int full;
  int tag;
  size_t total;
  size_t bytes;
  char data[SLOT_BYTES];
};

/*
 * The state that ranks share. The lock is robust, and the bells are counters on which ranks sleep
 * in the kernel, because a rank may be killed at any point. A pthread condition would wait for a
 * dead sleeper.
 */
struct clique {
  int ready;
  pthread_mutex_t lock;
  int bells[MAX_RANKS];
  int joined;
  int gone[MAX_RANKS];
  long gpu[MAX_RANKS]; /* 0 until the rank has joined. */
  int registered[MAX_RANKS];
  size_t window_bytes[MAX_RANKS];
  struct slot slots[MAX_RANKS][MAX_RANKS];
};

struct comm {
  struct clique *clique;
  char name[128];
  int rank;
  int nranks;
  int device;
  pthread_t owner;
  pthread_t starter;
  int starting;
  volatile int state;
  volatile int aborted;
  int polls;
  int finalizing;
  int collectives;
  int in_flight;
  int graphs; /* pieces of work that graphs refer to. */
  struct comm **out;
  struct window *windows;
  struct window **registering; /* where the handle goes once all ranks have registered. */
};

struct window {
  char *start;
  size_t bytes;
  struct window *next;
};

enum kind { ALL_REDUCE = 1, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, SEND, RECEIVE };

struct task {
  enum kind kind;
  const char *send;
  char *receive;
  size_t count;
  int type;
  int op;
  int peer; /* or the root. */
};

struct batch {
  struct comm *comm;
  void *stream;
  int count;
  int fault;
  int hangs;
  struct task tasks[MAX_TASKS];
};

struct transfer {
  int peer;
  int is_send;
  int tag;
  char *data;
  size_t bytes;
  size_t moved;
  int done;
};

static __thread int group_depth;
static __thread struct batch *group;
static int fault;
static int death;
static int hanging;
static int launches;

/* ---- functions that tests call ---- */

/* The next launched work ends without an effect and leaves this state. */
void ncclDoubleFailNext(int state) { fault = state; }

static int last_max_blocks;

/* The limit of blocks of the last communicator. */
int ncclDoubleMaxBlocks(void) { return last_max_blocks; }

/* The next launches, as many as given, wait without end until they are aborted. */
void ncclDoubleHang(int operations) { hanging = operations; }

/* The number of launched collectives and groups since the last call. */
int ncclDoubleLaunches(void) { return __atomic_exchange_n(&launches, 0, __ATOMIC_SEQ_CST); }

/* Kills this process inside the operation that moves the given number of chunks from now on. */
void ncclDoubleDieInside(int chunks) { death = chunks; }

/* ---- rendezvous ---- */

static void take(struct clique *clique) {
  if (pthread_mutex_lock(&clique->lock) == EOWNERDEAD) {
    pthread_mutex_consistent(&clique->lock);
  }
}

static void give(struct clique *clique) { pthread_mutex_unlock(&clique->lock); }

/* Releases the lock until the rank's bell has rung, at most 20 ms. */
static void wait_bell(struct comm *comm) {
  int *bell = &comm->clique->bells[comm->rank];
  int heard = __atomic_load_n(bell, __ATOMIC_SEQ_CST);
  struct timespec most = {0, 20000000};
  give(comm->clique);
  syscall(SYS_futex, bell, FUTEX_WAIT, heard, &most, NULL, 0);
  take(comm->clique);
}

static void ring(struct clique *clique, int rank) {
  __atomic_add_fetch(&clique->bells[rank], 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &clique->bells[rank], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void ring_all(struct clique *clique) {
  for (int rank = 0; rank < MAX_RANKS; rank++) {
    ring(clique, rank);
  }
}

static void initialise(struct clique *clique) {
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&clique->lock, &mutex);
  __atomic_store_n(&clique->ready, 1, __ATOMIC_RELEASE);
}

/*
 * The first to arrive creates the segment; the last to join unlinks it. The first may die before it
 * is done, so the others wait until they are aborted.
 */
static struct clique *open_clique(const char *name, volatile int *aborted) {
  int first = 1;
  int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0) {
    first = 0;
    file = shm_open(name, O_RDWR, 0600);
  } else if (ftruncate(file, sizeof(struct clique)) != 0) {
    close(file);
    return NULL;
  }
  if (file < 0) {
    return NULL;
  }
  while (!first && lseek(file, 0, SEEK_END) < (off_t)sizeof(struct clique)) {
    if (*aborted) {
      close(file);
      return NULL;
    }
    sched_yield();
  }
  struct clique *clique =
      mmap(NULL, sizeof *clique, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (clique == MAP_FAILED) {
    return NULL;
  }
  if (first) {
    initialise(clique);
  }
  while (!__atomic_load_n(&clique->ready, __ATOMIC_ACQUIRE)) {
    if (*aborted) {
      munmap(clique, sizeof *clique);
      return NULL;
    }
    sched_yield();
  }
  return clique;
}

/* Like NCCL from 2.30.3 on, which lets several ranks share a GPU if its environment says so. */
static int may_share(void) {
  const char *enable = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return VERSION >= 23003 && enable != NULL && strcmp(enable, "1") == 0;
}

static int is_duplicate(struct comm *comm) {
  if (may_share()) {
    return 0;
  }
  for (int rank = 0; rank < comm->nranks; rank++) {
    if (rank != comm->rank && comm->clique->gpu[rank] == comm->device + 1) {
      return 1;
    }
  }
  return 0;
}

static void *start(void *argument) {
  struct comm *comm = argument;
  struct clique *clique = open_clique(comm->name, &comm->aborted);
  comm->clique = clique;
  if (clique == NULL) {
    comm->state = ncclSystemError;
    return NULL;
  }
  take(clique);
  clique->joined++;
  clique->gpu[comm->rank] = comm->device + 1;
  ring_all(clique);
  while (clique->joined < comm->nranks && !comm->aborted) {
    wait_bell(comm);
  }
  if (clique->joined == comm->nranks) {
    shm_unlink(comm->name);
  }
  int state = comm->aborted ? ncclInternalError : ncclSuccess;
  if (state == ncclSuccess && is_duplicate(comm)) {
    state = ncclInvalidUsage;
  }
  give(clique);
  *comm->out = comm; /* As in NCCL: from its own thread, when the caller no longer expects it. */
  comm->state = state;
  return NULL;
}

static ncclResult_t launch_start(struct comm *comm, struct comm **out) {
  comm->owner = pthread_self();
  comm->state = ncclInProgress;
  comm->out = out;
  comm->starting = 1;
  *out = comm;
  double_count("nccl communicators", 1);
  pthread_create(&comm->starter, NULL, start, comm);
  return ncclInProgress;
}

ncclResult_t ncclGetVersion(int *version) {
  *version = VERSION;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unhandled cuda error";
  }
}

const char *ncclGetLastError(struct comm *comm) {
  return comm != NULL && comm->state == ncclInvalidUsage ? "Duplicate GPU detected"
                                                         : "reported by the double";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static int number;
  memset(id, 0x5a, sizeof *id);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  snprintf(id->internal, 100, "/weft-nccl-double-%d-%lx%lx-%d", getpid(), now.tv_sec, now.tv_nsec,
           __atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST));
  id->internal[127] = 0x77;
  return ncclSuccess;
}

#ifndef WEFT_DOUBLE_OLD
ncclResult_t ncclCommInitRankConfig(struct comm **out, int nranks, ncclUniqueId id, int rank,
                                    struct config *config) {
  if (config->size < sizeof *config || config->magic != 0xcafebeef || config->version < 21800) {
    double_violation("ncclConfig_t of size %zu, magic %x, version %u", config->size, config->magic,
                     config->version);
    return ncclInvalidArgument;
  }
  if (config->blocking != 0) {
    double_violation("a blocking communicator");
  }
  if (config->cluster_size != INT_MIN || config->min_blocks != INT_MIN ||
      (config->max_blocks != INT_MIN && config->max_blocks < 1) || config->net_name != NULL ||
      config->split_share != INT_MIN) {
    double_violation("ncclConfig_t with cluster size %d, blocks %d to %d, split share %d",
                     config->cluster_size, config->min_blocks, config->max_blocks,
                     config->split_share);
    return ncclInvalidArgument;
  }
  last_max_blocks = config->max_blocks;
  if (id.internal[127] != 0x77 || id.internal[126] != 0x5a) {
    double_violation("the unique id did not arrive complete");
    return ncclInvalidArgument;
  }
  int device = double_current_device();
  if (device < 0 || nranks < 1 || nranks > MAX_RANKS || rank < 0 || rank >= nranks) {
    double_violation("rank %d of %d on device %d", rank, nranks, device);
    return ncclInvalidArgument;
  }
  struct comm *comm = calloc(1, sizeof *comm);
  snprintf(comm->name, sizeof comm->name, "%.100s", id.internal);
  comm->rank = rank;
  comm->nranks = nranks;
  comm->device = device;
  return launch_start(comm, out);
}
#endif

static ncclResult_t check(struct comm *comm, const char *caller) {
  if (comm == NULL || !pthread_equal(comm->owner, pthread_self())) {
    double_violation("%s from another thread than the one that made the communicator", caller);
    return ncclInvalidUsage;
  }
  if (comm->state == ncclInProgress || comm->polls > 0 || comm->registering != NULL) {
    double_violation("%s while the communicator is still busy", caller);
    return ncclInvalidUsage;
  }
  if (comm->finalizing || comm->aborted) {
    double_violation("%s on a communicator that was aborted", caller);
    return ncclInvalidUsage;
  }
  if (double_current_device() != comm->device) {
    double_violation("%s in the context of device %d, the communicator has %d", caller,
                     double_current_device(), comm->device);
    return ncclInvalidUsage;
  }
  return comm->state;
}

/* ---- end ---- */

static int have_all_gone(struct comm *comm) {
  take(comm->clique);
  int all = 1;
  for (int rank = 0; rank < comm->nranks; rank++) {
    all &= comm->clique->gone[rank];
  }
  give(comm->clique);
  return all;
}

static void go(struct comm *comm) {
  if (comm->clique != NULL) {
    take(comm->clique);
    comm->clique->gone[comm->rank] = 1;
    ring_all(comm->clique);
    give(comm->clique);
  }
}

/* Like the other results of NCCL, the handle arrives later, when all ranks have arrived. */
static int have_all_registered(struct comm *comm) {
  struct clique *clique = comm->clique;
  take(clique);
  int all = 1;
  for (int rank = 0; rank < comm->nranks; rank++) {
    all &= clique->registered[rank] >= clique->registered[comm->rank];
    if (clique->registered[rank] == clique->registered[comm->rank] &&
        clique->window_bytes[rank] != clique->window_bytes[comm->rank]) {
      double_violation("windows of %zu and %zu bytes", clique->window_bytes[rank],
                       clique->window_bytes[comm->rank]);
    }
  }
  give(clique);
  if (all) {
    *comm->registering = comm->windows;
    comm->registering = NULL;
  }
  return all;
}

ncclResult_t ncclCommGetAsyncError(struct comm *comm, ncclResult_t *state) {
  if (comm->polls > 0) {
    comm->polls--;
    *state = ncclInProgress;
  } else if (comm->registering != NULL && comm->state == ncclSuccess) {
    *state = have_all_registered(comm) ? ncclSuccess : ncclInProgress;
  } else if (comm->finalizing && comm->state == ncclSuccess) {
    *state = have_all_gone(comm) ? ncclSuccess : ncclInProgress;
  } else {
    *state = comm->state;
  }
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(struct comm *comm) {
  ncclResult_t result = check(comm, "ncclCommFinalize");
  if (result == ncclSuccess) {
    if (__atomic_load_n(&comm->in_flight, __ATOMIC_SEQ_CST) > 0) {
      double_violation("ncclCommFinalize with work in flight");
    }
    go(comm);
    comm->finalizing = 1;
    result = ncclInProgress;
  }
  return result;
}

static void drop(struct window **list, struct window *window, const char *kind) {
  for (struct window **each = list; *each != NULL; each = &(*each)->next) {
    if (*each == window) {
      *each = window->next;
      break;
    }
  }
  double_hold_virtual(window->start, window->bytes, -1);
  double_count(kind, -1);
  free(window);
}

static void drop_window(struct comm *comm, struct window *window) {
  drop(&comm->windows, window, "nccl windows");
}

static void end(struct comm *comm) {
  if (comm->starting) {
    pthread_join(comm->starter, NULL);
  }
  while (__atomic_load_n(&comm->in_flight, __ATOMIC_SEQ_CST) > 0) {
    usleep(100);
  }
  if (comm->windows != NULL && !comm->aborted) {
    double_violation("a communicator that ends with windows");
  }
  while (comm->windows != NULL) {
    drop_window(comm, comm->windows);
  }
  double_count("nccl communicators", -1);
  if (__atomic_load_n(&comm->graphs, __ATOMIC_SEQ_CST) > 0) {
    double_violation("a communicator that ends while a graph refers to it, for which NCCL waits");
    return;
  }
  if (comm->clique != NULL) {
    if (comm->clique->joined < comm->nranks) {
      shm_unlink(comm->name);
    }
    munmap(comm->clique, sizeof *comm->clique);
  }
  free(comm);
}

ncclResult_t ncclCommDestroy(struct comm *comm) {
  if (!comm->finalizing || !have_all_gone(comm)) {
    double_violation("ncclCommDestroy, which blocks until all ranks have finalized");
  }
  end(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(struct comm *comm) {
  if (!pthread_equal(comm->owner, pthread_self())) {
    double_violation("ncclCommAbort from another thread than the one that uses it");
  }
  comm->aborted = 1;
  if (comm->starting) {
    pthread_join(comm->starter, NULL);
    comm->starting = 0;
  }
  go(comm);
  end(comm);
  return ncclSuccess;
}

/* ---- memory and windows ---- */

extern int cuMemAddressReserve(void **out, size_t bytes, size_t alignment, void *hint,
                               unsigned long long flags);
extern int cuMemAddressFree(void *start, size_t bytes);
extern int cuMemCreate(void **out, size_t bytes, const void *properties, unsigned long long flags);
extern int cuMemRelease(void *memory);
extern int cuMemMap(void *start, size_t bytes, size_t offset, void *memory,
                    unsigned long long flags);
extern int cuMemUnmap(void *start, size_t bytes);
extern int cuMemSetAccess(void *start, size_t bytes, const void *access, size_t count);
extern int cuMemGetAddressRange_v2(void **base, size_t *bytes, void *pointer);

ncclResult_t ncclMemAlloc(void **out, size_t bytes) {
  size_t granule = (size_t)2 << 20;
  size_t whole = (bytes + granule - 1) / granule * granule;
  int properties[8] = {1, 1, 1, double_current_device(), 0, 0, 0, 0};
  int access[3] = {1, double_current_device(), 3};
  void *memory;
  if (cuMemAddressReserve(out, whole, 0, NULL, 0) != 0) {
    return ncclUnhandledCudaError;
  }
  if (cuMemCreate(&memory, whole, properties, 0) != 0) {
    cuMemAddressFree(*out, whole);
    return ncclUnhandledCudaError;
  }
  int failed = cuMemMap(*out, whole, 0, memory, 0) || cuMemSetAccess(*out, whole, access, 1);
  cuMemRelease(memory);
  return failed ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t ncclMemFree(void *start) {
  void *base;
  size_t bytes;
  if (cuMemGetAddressRange_v2(&base, &bytes, start) != 0 || base != start) {
    double_violation("ncclMemFree of unknown memory");
    return ncclInvalidArgument;
  }
  return cuMemUnmap(start, bytes) || cuMemAddressFree(start, bytes) ? ncclUnhandledCudaError
                                                                    : ncclSuccess;
}

#if !defined(WEFT_DOUBLE_OLD) && !defined(WEFT_DOUBLE_WITHOUT_WINDOWS)
ncclResult_t ncclCommWindowRegister(struct comm *comm, void *start, size_t bytes,
                                    struct window **out, int flags) {
  ncclResult_t result = check(comm, "ncclCommWindowRegister");
  if (result != ncclSuccess) {
    return result;
  }
  if (flags != 1 || (uintptr_t)start % 4096 != 0 || !double_hold_virtual(start, bytes, 1)) {
    double_violation("ncclCommWindowRegister of %zu bytes, which cannot be a window", bytes);
    return ncclInvalidArgument;
  }
  if (comm->nranks > 1 && !double_is_exportable(start)) {
    double_hold_virtual(start, bytes, -1);
    double_violation("a window of memory without the handle type that NCCL exports");
    return ncclUnhandledCudaError;
  }
  struct window *window = calloc(1, sizeof *window);
  *window = (struct window){start, bytes, comm->windows};
  comm->windows = window;
  comm->registering = out;
  double_count("nccl windows", 1);
  take(comm->clique);
  comm->clique->registered[comm->rank]++;
  comm->clique->window_bytes[comm->rank] = bytes;
  give(comm->clique);
  return ncclInProgress;
}

ncclResult_t ncclCommWindowDeregister(struct comm *comm, struct window *window) {
  ncclResult_t result = check(comm, "ncclCommWindowDeregister");
  if (result == ncclSuccess) {
    drop_window(comm, window);
  }
  return result;
}
#endif

/* ---- data movement ---- */

static int step_send(struct comm *comm, struct transfer *transfer) {
  struct slot *slot = &comm->clique->slots[comm->rank][transfer->peer];
  if (slot->full) {
    return 0;
  }
  size_t left = transfer->bytes - transfer->moved;
  slot->bytes = left < SLOT_BYTES ? left : SLOT_BYTES;
  slot->total = transfer->bytes;
  slot->tag = transfer->tag;
  memcpy(slot->data, transfer->data + transfer->moved, slot->bytes);
  slot->full = 1;
  transfer->moved += slot->bytes;
  transfer->done = transfer->moved == transfer->bytes;
  ring(comm->clique, transfer->peer);
  return 1;
}

static int step_receive(struct comm *comm, struct transfer *transfer) {
  struct slot *slot = &comm->clique->slots[transfer->peer][comm->rank];
  if (!slot->full || slot->total != transfer->bytes || slot->tag != transfer->tag) {
    if (slot->full && slot->tag != transfer->tag) {
      double_violation("rank %d is at operation %x, rank %d at %x", comm->rank, transfer->tag,
                       transfer->peer, slot->tag);
      transfer->tag = slot->tag;
      transfer->bytes = SIZE_MAX;
    }
    return 0;
  }
  memcpy(transfer->data + transfer->moved, slot->data, slot->bytes);
  transfer->moved += slot->bytes;
  transfer->done = transfer->moved == transfer->bytes;
  slot->full = 0;
  ring(comm->clique, transfer->peer);
  return 1;
}

/* Runs with the lock held and the slots half full, as a killed rank leaves them. */
static void die_if_due(void) {
  if (death > 0 && --death == 0) {
    kill(getpid(), SIGKILL);
    pause();
  }
}

/* Moves all transfers at once; those with one peer in one direction in their order. 0 if aborted.
 */
static int move(struct comm *comm, struct transfer *transfers, int count) {
  take(comm->clique);
  int left = count;
  while (left > 0 && !comm->aborted) {
    char busy[2][MAX_RANKS] = {{0}};
    int progress = 0;
    left = 0;
    for (int i = 0; i < count; i++) {
      struct transfer *each = &transfers[i];
      if (!each->done && !busy[each->is_send][each->peer]) {
        busy[each->is_send][each->peer] = 1;
        int step = each->is_send ? step_send(comm, each) : step_receive(comm, each);
        progress |= step;
        if (step) {
          die_if_due();
        }
      }
      left += !each->done;
    }
    if (left > 0 && !progress) {
      wait_bell(comm);
    }
  }
  give(comm->clique);
  return !comm->aborted;
}

/* ---- collectives ---- */

static size_t bytes_of(int type) {
  static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return type >= 0 && type < 10 ? bytes[type] : 0;
}

#define COMBINE(TYPE)                                                              \
  for (size_t i = 0; i < count; i++) {                                             \
    TYPE *a = (TYPE *)into + i;                                                    \
    TYPE b = ((const TYPE *)from)[i];                                              \
    *a = op == 0 ? *a + b : op == 1 ? *a * b : op == 2 ? (*a > b ? *a : b)         \
                                             : (*a < b ? *a : b);                  \
  }

static void combine(char *into, const char *from, size_t count, int type, int op) {
  switch (type) {
    case 0: COMBINE(int8_t) break;
    case 2: COMBINE(uint32_t) break;
    case 4: COMBINE(uint64_t) break;
    case 7: COMBINE(float) break;
    case 8: COMBINE(double) break;
    default: break;
  }
}

/* MIN and MAX compare with a sign; sums and products of unsigned values wrap as signed ones do. */
static void combine_signed(char *into, const char *from, size_t count, int type, int op) {
  if (op >= 2 && type == 2) {
    COMBINE(int32_t)
  } else if (op >= 2 && type == 4) {
    COMBINE(int64_t)
  } else {
    combine(into, from, count, type, op);
  }
}

static int tag_of(struct comm *comm, const struct task *task) {
  return comm->collectives << 8 | task->kind << 4 | (task->type & 15);
}

static struct transfer transfer(int peer, int is_send, int tag, const void *data, size_t bytes) {
  struct transfer made = {peer, is_send, tag, (char *)data, bytes, 0, 0};
  return made;
}

/* Every rank's part of `bytes` arrives at the root and is reduced in the order of the ranks. */
static int reduce_to(struct comm *comm, const struct task *task, int root, const char *own,
                     size_t count, char *result, int tag) {
  size_t bytes = count * bytes_of(task->type);
  struct transfer transfers[MAX_RANKS];
  if (comm->rank != root) {
    transfers[0] = transfer(root, 1, tag, own, bytes);
    return move(comm, transfers, 1);
  }
  char *parts = malloc(bytes * comm->nranks + 1);
  int n = 0;
  for (int rank = 0; rank < comm->nranks; rank++) {
    if (rank != root) {
      transfers[n++] = transfer(rank, 0, tag, parts + rank * bytes, bytes);
    }
  }
  memcpy(parts + root * bytes, own, bytes);
  int whole = move(comm, transfers, n);
  for (int rank = 1; whole && rank < comm->nranks; rank++) {
    combine_signed(parts, parts + rank * bytes, count, task->type, task->op);
  }
  if (whole) {
    memcpy(result, parts, bytes);
  }
  free(parts);
  return whole;
}

static int broadcast(struct comm *comm, int root, const char *from, char *to, size_t bytes,
                     int tag) {
  struct transfer transfers[MAX_RANKS];
  int n = 0;
  if (comm->rank != root) {
    transfers[n++] = transfer(root, 0, tag, to, bytes);
    return move(comm, transfers, n);
  }
  for (int rank = 0; rank < comm->nranks; rank++) {
    if (rank != root) {
      transfers[n++] = transfer(rank, 1, tag, from, bytes);
    }
  }
  memmove(to, from, bytes);
  return move(comm, transfers, n);
}

static int all_gather(struct comm *comm, const struct task *task, int tag) {
  size_t bytes = task->count * bytes_of(task->type);
  struct transfer transfers[2 * MAX_RANKS];
  int n = 0;
  memmove(task->receive + comm->rank * bytes, task->send, bytes);
  for (int rank = 0; rank < comm->nranks; rank++) {
    if (rank != comm->rank) {
      transfers[n++] =
          transfer(rank, 1, tag, task->receive + comm->rank * bytes, bytes);
      transfers[n++] = transfer(rank, 0, tag, task->receive + rank * bytes, bytes);
    }
  }
  return move(comm, transfers, n);
}

static int reduce_scatter(struct comm *comm, const struct task *task, int tag) {
  size_t bytes = task->count * bytes_of(task->type);
  int whole = 1;
  char *result = malloc(bytes + 1);
  for (int root = 0; whole && root < comm->nranks; root++) {
    whole = reduce_to(comm, task, root, task->send + root * bytes, task->count, result, tag);
  }
  if (whole) {
    memcpy(task->receive, result, bytes);
  }
  free(result);
  return whole;
}

static int run_collective(struct comm *comm, const struct task *task) {
  int tag = tag_of(comm, task);
  size_t bytes = task->count * bytes_of(task->type);
  comm->collectives++;
  switch (task->kind) {
    case ALL_REDUCE:
      return reduce_to(comm, task, 0, task->send, task->count, task->receive, tag) &&
             broadcast(comm, 0, task->receive, task->receive, bytes, tag);
    case REDUCE:
      return reduce_to(comm, task, task->peer, task->send, task->count, task->receive, tag);
    case BROADCAST:
      return broadcast(comm, task->peer, task->send, task->receive, bytes, tag);
    case ALL_GATHER:
      return all_gather(comm, task, tag);
    default:
      return reduce_scatter(comm, task, tag);
  }
}

static void run_pairs(struct comm *comm, struct batch *batch) {
  struct transfer *transfers = calloc(batch->count, sizeof *transfers);
  int n = 0;
  for (int i = 0; i < batch->count; i++) {
    struct task *task = &batch->tasks[i];
    size_t bytes = task->count * bytes_of(task->type);
    if (task->kind == SEND) {
      transfers[n++] = transfer(task->peer, 1, SEND, task->send, bytes);
    } else if (task->kind == RECEIVE) {
      transfers[n++] = transfer(task->peer, 0, SEND, task->receive, bytes);
    }
  }
  move(comm, transfers, n);
  free(transfers);
}

static void run_batch(void *argument) {
  struct batch *batch = argument;
  struct comm *comm = batch->comm;
  if (batch->fault) {
    comm->state = batch->fault;
  } else if (batch->hangs) {
    while (!comm->aborted) {
      usleep(100);
    }
  } else {
    int whole = 1;
    for (int i = 0; whole && i < batch->count; i++) {
      if (batch->tasks[i].kind < SEND) {
        whole = run_collective(comm, &batch->tasks[i]);
      }
    }
    if (whole) {
      run_pairs(comm, batch);
    }
  }
  free(batch);
  __atomic_sub_fetch(&comm->in_flight, 1, __ATOMIC_SEQ_CST);
}

/* ---- groups ---- */

static size_t sent_bytes(struct comm *comm, const struct task *task) {
  size_t bytes = task->count * bytes_of(task->type);
  switch (task->kind) {
    case RECEIVE: return 0;
    case BROADCAST: return task->peer == comm->rank ? bytes : 0;
    case REDUCE_SCATTER: return bytes * comm->nranks;
    default: return bytes;
  }
}

static size_t received_bytes(struct comm *comm, const struct task *task) {
  size_t bytes = task->count * bytes_of(task->type);
  switch (task->kind) {
    case SEND: return 0;
    case REDUCE: return task->peer == comm->rank ? bytes : 0;
    case ALL_GATHER: return bytes * comm->nranks;
    default: return bytes;
  }
}

/* Called at the launch, alone or with a graph. */
static void start_batch(void *argument) {
  struct batch *batch = argument;
  batch->fault = __atomic_exchange_n(&fault, 0, __ATOMIC_SEQ_CST);
  batch->hangs = hanging > 0 && __atomic_sub_fetch(&hanging, 1, __ATOMIC_SEQ_CST) >= 0;
  if (batch->comm->aborted) {
    double_violation("the launch of a graph with a communicator that was given up");
  }
  __atomic_add_fetch(&batch->comm->in_flight, 1, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&launches, 1, __ATOMIC_SEQ_CST);
}

static void refer_batch(void *argument, int delta) {
  __atomic_add_fetch(&((struct batch *)argument)->comm->graphs, delta, __ATOMIC_SEQ_CST);
}

static ncclResult_t launch(struct batch *batch) {
  struct double_range ranges[DOUBLE_MOST_RANGES];
  int n = 0;
  int pairs = 0;
  struct comm *comm = batch->comm;
  for (int i = 0; i < batch->count; i++) {
    struct task *task = &batch->tasks[i];
    ranges[n++] = (struct double_range){task->send, sent_bytes(comm, task)};
    ranges[n++] = (struct double_range){task->receive, received_bytes(comm, task)};
    pairs += task->kind >= SEND;
  }
  if (pairs != 0 && pairs != batch->count) {
    double_violation("collectives and pairs in one group, which run one after the other");
  }
  for (int i = 0; i < n; i++) {
    if (ranges[i].bytes > 0 && !double_is_on_device(ranges[i].start, ranges[i].bytes, comm->device)) {
      double_violation("%zu bytes at %p are not in memory of device %d", ranges[i].bytes,
                       ranges[i].start, comm->device);
      free(batch);
      return ncclInvalidArgument;
    }
  }
  comm->polls = 1;
  struct double_work work = {run_batch, start_batch, refer_batch};
  double_enqueue(batch->stream, &work, batch, ranges, n);
  return ncclInProgress;
}

ncclResult_t ncclGroupStart(void) {
  group_depth++;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  if (group_depth == 0) {
    double_violation("ncclGroupEnd without a start");
    return ncclInvalidUsage;
  }
  struct batch *batch = group;
  if (--group_depth > 0 || batch == NULL) {
    return ncclSuccess;
  }
  group = NULL;
  return launch(batch);
}

static ncclResult_t add(struct comm *comm, void *stream, struct task task, const char *caller) {
  ncclResult_t result = check(comm, caller);
  if (result != ncclSuccess) {
    return result;
  }
  if (double_stream_device(stream, caller) != comm->device) {
    return ncclInvalidUsage;
  }
  if (bytes_of(task.type) == 0 || task.op < 0 || task.op > 3 || task.peer < 0 ||
      task.peer >= comm->nranks || (task.kind >= SEND && task.peer == comm->rank && !group_depth)) {
    double_violation("%s: type %d, reduction %d, peer %d", caller, task.type, task.op, task.peer);
    return ncclInvalidArgument;
  }
  if (group != NULL && (group->comm != comm || group->stream != stream)) {
    double_violation("%s: two communicators or streams in one group", caller);
    return ncclInvalidUsage;
  }
  if (group == NULL) {
    group = calloc(1, sizeof *group);
    group->comm = comm;
    group->stream = stream;
  }
  if (group->count == MAX_TASKS) {
    double_violation("the double takes %d operations in a group", MAX_TASKS);
    return ncclInvalidArgument;
  }
  group->tasks[group->count++] = task;
  if (group_depth > 0) {
    return ncclSuccess;
  }
  struct batch *batch = group;
  group = NULL;
  return launch(batch);
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, int type, int op,
                           struct comm *comm, void *stream) {
  struct task task = {ALL_REDUCE, send, receive, count, type, op, 0};
  return add(comm, stream, task, "ncclAllReduce");
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count, int type, int op, int root,
                        struct comm *comm, void *stream) {
  struct task task = {REDUCE, send, receive, count, type, op, root};
  return add(comm, stream, task, "ncclReduce");
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
                           struct comm *comm, void *stream) {
  struct task task = {BROADCAST, send, receive, count, type, 0, root};
  return add(comm, stream, task, "ncclBroadcast");
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, int type,
                           struct comm *comm, void *stream) {
  struct task task = {ALL_GATHER, send, receive, count, type, 0, 0};
  return add(comm, stream, task, "ncclAllGather");
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, int type, int op,
                               struct comm *comm, void *stream) {
  struct task task = {REDUCE_SCATTER, send, receive, count, type, op, 0};
  return add(comm, stream, task, "ncclReduceScatter");
}

ncclResult_t ncclSend(const void *send, size_t count, int type, int peer, struct comm *comm,
                      void *stream) {
  struct task task = {SEND, send, NULL, count, type, 0, peer};
  return add(comm, stream, task, "ncclSend");
}

ncclResult_t ncclRecv(void *receive, size_t count, int type, int peer, struct comm *comm,
                      void *stream) {
  struct task task = {RECEIVE, NULL, receive, count, type, 0, peer};
  return add(comm, stream, task, "ncclRecv");
}
