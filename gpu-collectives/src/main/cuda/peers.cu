/*
 * Rows that every rank writes straight into the memory of the others: a barrier, the rows, and
 * another barrier, each a separate launch on one stream. io.weft.collectives.nccl launches these
 * kernels.
 */
#include "signals.h"

/* In pinned memory: messages between the host and the device. */
struct report {
  uint32_t stop;               /* the host has given up. */
  uint32_t stopped;            /* a barrier ended for that reason. */
  uint32_t entry;              /* one more than the number of an update that is out of range. */
  uint32_t silent[MAX_RANKS]; /* 1 for a rank that did not arrive in time. */
};

struct barrier_arguments {
  uint64_t signals[MAX_RANKS]; /* of all ranks, as mapped here. */
  uint64_t report;
  int64_t timeout; /* nanoseconds. */
  int32_t rank;
  int32_t ranks;
};

/*
 * One block of at least as many threads as ranks. A peer may be a barrier ahead, and numbers wrap
 * around.
 */
KERNEL(weft_peer_barrier, barrier_arguments, 32) {
  struct signals *own = (struct signals *)a.signals[a.rank];
  struct report *report = (struct report *)a.report;
  int peer = THREAD;
  int64_t start = now();
  uint32_t number = own->barriers + 1;
  int failed = own->failed != 0;
  if (peer < a.ranks && !failed) {
    store_release(&((struct signals *)a.signals[peer])->arrived[a.rank], number);
  }
  SYNC();
  while (peer < a.ranks && !failed && (int32_t)(load_acquire(&own->arrived[peer]) - number) < 0) {
    if (load_acquire(&report->stop) != 0) {
      report->stopped = 1;
      failed = 1;
    } else if (now() - start > a.timeout) {
      report->silent[peer] = 1;
      failed = 1;
    } else {
      pause_shortly();
    }
  }
  SYNC();
  if (failed) {
    own->failed = 1;
  }
  if (THREAD == 0) {
    own->barriers = number;
  }
}

struct write_arguments {
  uint64_t receive[MAX_RANKS]; /* of all ranks, as mapped here. */
  int64_t rows[MAX_RANKS];     /* how many fit there. */
  uint64_t send;
  int64_t send_rows;
  uint64_t table; /* of each update: first row here, rows, first row there; 8 bytes each. */
  uint64_t signals;
  uint64_t report;
  int64_t row_bytes;
  int32_t updates; /* for each rank. */
  int32_t ranks;
};

/* Blocks that share an update. */
#define PARTS 8

#define COPY_AS(type)                                                              \
  for (int64_t at = first; at < bytes / (int64_t)sizeof(type); at += step) {    \
    ((type *)to)[at] = ((const type *)from)[at];                                \
  }

INLINE void copy_rows(char *to, const char *from, int64_t bytes, int64_t first, int64_t step) {
  uint64_t together = (uint64_t)to | (uint64_t)from | (uint64_t)bytes;
  if (together % 16 == 0) {
    COPY_AS(wide)
  } else if (together % 4 == 0) {
    COPY_AS(uint32_t)
  } else {
    COPY_AS(char)
  }
}

INLINE int fits(int64_t first, int64_t rows, int64_t all) {
  return first >= 0 && rows >= 0 && rows <= all && first <= all - rows;
}

/* Works with any number of blocks. Rows out of range are not written, and the host is told. */
KERNEL(weft_peer_write, write_arguments, 256) {
  if (((struct signals *)a.signals)->failed != 0) {
    return;
  }
  int64_t work = (int64_t)a.ranks * a.updates * PARTS;
  for (int64_t each = BLOCK; each < work; each += BLOCKS) {
    int64_t entry = each / PARTS;
    int64_t peer = entry / a.updates;
    const int64_t *update = (const int64_t *)a.table + 3 * entry;
    if (!fits(update[0], update[1], a.send_rows) || !fits(update[2], update[1], a.rows[peer])) {
      ((struct report *)a.report)->entry = (uint32_t)(entry + 1);
    } else {
      copy_rows((char *)a.receive[peer] + update[2] * a.row_bytes,
                (const char *)a.send + update[0] * a.row_bytes, update[1] * a.row_bytes,
                each % PARTS * THREADS + THREAD, (int64_t)PARTS * THREADS);
    }
  }
}
