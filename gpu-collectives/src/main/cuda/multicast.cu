/*
 * Blocks that a rank writes once, into the memory of all ranks, between two barriers of peers.cu on
 * the same stream. io.weft.collectives.nccl launches these kernels.
 *
 * Only whole units of 16 bytes at multiples of 16 are written in place, because there is no
 * narrower instruction that works at every address. The bytes before and after them go to a slot of
 * the rank. Each rank copies them from there when all slots are written.
 *
 * Memory has two addresses here: the multicast address and its own. A kernel that stores through
 * one of them executes a proxy fence before it ends, because the next store may use the other
 * address. The blocks are read by a later launch, after the second barrier, which needs no further
 * fence.
 */
#include "signals.h"
#include "multimem.h"

#define UNIT 16

/* The bytes before the whole units, and those after them. */
#define SLOT_BYTES (2 * UNIT)

INLINE int64_t head_bytes(uint64_t address, int64_t bytes) {
  int64_t head = (int64_t)(-address & (UNIT - 1));
  return head < bytes ? head : bytes;
}

INLINE uint64_t bytes_of(const uint8_t *from, int64_t count) {
  uint64_t value = 0;
  for (int64_t i = 0; i < count && i < 8; i++) {
    value |= (uint64_t)from[i] << (8 * i);
  }
  return value;
}

/* Returns count bytes at any address; the rest of the unit is zero. */
INLINE wide unit_of(const uint8_t *from, int64_t count) {
  return wide_of(bytes_of(from, count), count > 8 ? bytes_of(from + 8, count - 8) : 0);
}

INLINE wide unit_of_words(const uint32_t *from) {
  return wide_of(from[0] | (uint64_t)from[1] << 32, from[2] | (uint64_t)from[3] << 32);
}

struct multicast_arguments {
  uint64_t target;  /* multicast address of the block. */
  uint64_t slot;    /* multicast address of its slot. */
  uint64_t source;
  int64_t bytes;
  uint64_t signals; /* of this rank. */
};

/* Works with any number of blocks. */
KERNEL(weft_multicast_write, multicast_arguments, 256) {
  if (((struct signals *)a.signals)->failed != 0) {
    return;
  }
  const uint8_t *source = (const uint8_t *)a.source;
  int64_t head = head_bytes(a.target, a.bytes);
  int64_t units = (a.bytes - head) / UNIT;
  const uint8_t *body = source + head;
  wide *to = (wide *)(a.target + head);
  EACH(i, units) {
    if ((uint64_t)body % UNIT == 0) {
      store_to_all(to + i, ((const wide *)body)[i]);
    } else if ((uint64_t)body % 4 == 0) {
      store_to_all(to + i, unit_of_words((const uint32_t *)body + 4 * i));
    } else {
      store_to_all(to + i, unit_of(body + UNIT * i, UNIT));
    }
  }
  int64_t tail = a.bytes - head - units * UNIT;
  if (BLOCK == 0 && THREAD == 0 && head > 0) {
    store_to_all((wide *)a.slot, unit_of(source, head));
  }
  if (BLOCK == 0 && THREAD == 1 && tail > 0) {
    store_to_all((wide *)a.slot + 1, unit_of(source + a.bytes - tail, tail));
  }
  settle_aliases();
}

struct ends_arguments {
  uint64_t slots;   /* of all ranks, in this rank's own memory. */
  uint64_t receive; /* where the first block begins there. */
  int64_t bytes;    /* of each block. */
  uint64_t signals; /* of this rank. */
  int32_t first;    /* the rank of the first block. */
  int32_t blocks;
};

/* A thread for each byte of each slot. */
KERNEL(weft_multicast_ends, ends_arguments, 256) {
  if (((struct signals *)a.signals)->failed != 0) {
    return;
  }
  settle_aliases();
  EACH(i, (int64_t)a.blocks * SLOT_BYTES) {
    int64_t block = i / SLOT_BYTES;
    int64_t at = i % UNIT;
    uint8_t *to = (uint8_t *)a.receive + block * a.bytes;
    int64_t head = head_bytes((uint64_t)to, a.bytes);
    int64_t tail = (a.bytes - head) % UNIT;
    uint8_t byte = ((const uint8_t *)a.slots)[a.first * SLOT_BYTES + i];
    if (i % SLOT_BYTES < UNIT && at < head) {
      to[at] = byte;
    }
    if (i % SLOT_BYTES >= UNIT && at < tail) {
      to[a.bytes - tail + at] = byte;
    }
  }
  settle_aliases();
}
