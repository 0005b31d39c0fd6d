/*
 * A stable radix sort of rows by partition, 8 bits in each pass, lowest first. Digits are counted
 * by tile and the counts are summed. Then every row is placed after the earlier rows of its digit.
 */

#define DIGITS 256
#define SORT_THREADS 256
#define ROWS_OF_THREAD 16
#define TILE (SORT_THREADS * ROWS_OF_THREAD)
#define SORT_WARPS (SORT_THREADS / 32)

/* Faults of the input. */
enum { BAD_PARTITION = 1, BAD_OFFSETS = 2 };

struct count_arguments {
  uint64_t keys;
  uint64_t counts; /* 4 bytes for each digit and tile, all tiles of digit 0 first. */
  uint64_t faults; /* 0 if keys were checked before. */
  int64_t rows;
  int64_t tiles;
  int32_t shift;
  int32_t partitions;
};

KERNEL(weft_count, count_arguments, SORT_THREADS) {
  SHARED uint32_t counts[DIGITS];
  counts[THREAD] = 0;
  SYNC();
  const uint32_t *keys = (const uint32_t *)a.keys;
  UNROLL
  for (int i = 0; i < ROWS_OF_THREAD; i++) {
    int64_t row = BLOCK * TILE + i * SORT_THREADS + THREAD;
    if (row < a.rows) {
      uint32_t key = keys[row];
      ADD(&counts[key >> a.shift & (DIGITS - 1)], 1u);
      if (a.faults != 0 && key >= (uint32_t)a.partitions) {
        OR((uint32_t *)a.faults, BAD_PARTITION);
      }
    }
  }
  SYNC();
  ((uint32_t *)a.counts)[THREAD * a.tiles + BLOCK] = counts[THREAD];
}

struct sort_arguments {
  uint64_t keys;
  uint64_t order; /* rows of the keys; 0 in the first pass: original order. */
  uint64_t counts;
  uint64_t sorted_keys;
  uint64_t sorted_order;
  uint64_t positions; /* of each row, in the last pass; else 0. */
  int64_t rows;
  int64_t tiles;
  int64_t shift;
};

KERNEL(weft_sort, sort_arguments, SORT_THREADS) {
  SHARED uint32_t places[SORT_WARPS][DIGITS];
  const uint32_t *keys = (const uint32_t *)a.keys;
  const uint32_t *order = (const uint32_t *)a.order;
  int64_t first = BLOCK * TILE + WARP * (TILE / SORT_WARPS) + LANE;
  uint32_t key[ROWS_OF_THREAD];
  for (int w = 0; w < SORT_WARPS; w++) {
    places[w][THREAD] = 0;
  }
  SYNC();
  UNROLL
  for (int i = 0; i < ROWS_OF_THREAD; i++) {
    key[i] = first + i * 32 < a.rows ? keys[first + i * 32] : 0;
    if (first + i * 32 < a.rows) {
      ADD(&places[WARP][key[i] >> a.shift & (DIGITS - 1)], 1u);
    }
  }
  SYNC();
  uint32_t place = ((const uint32_t *)a.counts)[THREAD * a.tiles + BLOCK];
  for (int w = 0; w < SORT_WARPS; w++) {
    uint32_t count = places[w][THREAD];
    places[w][THREAD] = place;
    place += count;
  }
  SYNC();
  UNROLL
  for (int i = 0; i < ROWS_OF_THREAD; i++) {
    int64_t at = first + i * 32;
    int is_row = at < a.rows;
    uint32_t digit = key[i] >> a.shift & (DIGITS - 1);
    uint32_t same = MATCH(is_row ? digit : DIGITS);
    uint32_t before = BITS(same & ((1u << LANE) - 1));
    uint32_t position = places[WARP][digit] + before;
    SYNC_WARP();
    if (is_row && before == 0) {
      places[WARP][digit] += BITS(same);
    }
    SYNC_WARP();
    if (is_row) {
      uint32_t row = order == 0 ? (uint32_t)at : order[at];
      ((uint32_t *)a.sorted_keys)[position] = key[i];
      ((uint32_t *)a.sorted_order)[position] = row;
      if (a.positions != 0) {
        ((uint32_t *)a.positions)[row] = position;
      }
    }
  }
}

/* ---- in place: each value becomes the sum of all values before it; three launches ---- */

struct scan_arguments {
  uint64_t values;
  uint64_t sums; /* 4 bytes for each tile of values. */
  int64_t count;
};

/* The sum over the threads before this one; total is the sum over all. */
INLINE uint32_t scan_block(uint32_t value, uint32_t *shared, uint32_t *total) {
  shared[THREAD] = value;
  SYNC();
  for (int distance = 1; distance < SORT_THREADS; distance *= 2) {
    uint32_t before = THREAD >= distance ? shared[THREAD - distance] : 0;
    SYNC();
    shared[THREAD] += before;
    SYNC();
  }
  uint32_t sum = shared[THREAD] - value;
  *total = shared[SORT_THREADS - 1];
  SYNC();
  return sum;
}

KERNEL(weft_scan_tiles, scan_arguments, SORT_THREADS) {
  SHARED uint32_t shared[SORT_THREADS];
  const uint32_t *values = (const uint32_t *)a.values;
  uint32_t sum = 0;
  uint32_t total;
  for (int i = 0; i < ROWS_OF_THREAD; i++) {
    int64_t at = BLOCK * TILE + i * SORT_THREADS + THREAD;
    sum += at < a.count ? values[at] : 0;
  }
  scan_block(sum, shared, &total);
  if (THREAD == 0) {
    ((uint32_t *)a.sums)[BLOCK] = total;
  }
}

/* One block sums over the tile sums of the launch before. */
KERNEL(weft_scan_sums, scan_arguments, SORT_THREADS) {
  SHARED uint32_t shared[SORT_THREADS];
  uint32_t *sums = (uint32_t *)a.sums;
  uint32_t before = 0;
  int64_t count = (a.count + TILE - 1) / TILE;
  for (int64_t first = 0; first < count; first += SORT_THREADS) {
    int64_t at = first + THREAD;
    uint32_t total;
    uint32_t sum = scan_block(at < count ? sums[at] : 0, shared, &total);
    if (at < count) {
      sums[at] = before + sum;
    }
    before += total;
  }
}

/* Skips one slot in 32, so threads with neighbouring ranges use different banks. */
#define SLOT(i) ((i) + ((i) >> 5))

KERNEL(weft_scan_values, scan_arguments, SORT_THREADS) {
  SHARED uint32_t shared[SORT_THREADS];
  SHARED uint32_t tile[TILE + TILE / 32];
  uint32_t *values = (uint32_t *)a.values + BLOCK * TILE;
  int64_t left = a.count - BLOCK * TILE;
  for (int i = THREAD; i < TILE; i += SORT_THREADS) {
    tile[SLOT(i)] = i < left ? values[i] : 0;
  }
  SYNC();
  int first = THREAD * ROWS_OF_THREAD;
  uint32_t sum = 0;
  uint32_t total;
  for (int i = first; i < first + ROWS_OF_THREAD; i++) {
    sum += tile[SLOT(i)];
  }
  uint32_t before = scan_block(sum, shared, &total) + ((const uint32_t *)a.sums)[BLOCK];
  for (int i = first; i < first + ROWS_OF_THREAD; i++) {
    uint32_t value = tile[SLOT(i)];
    tile[SLOT(i)] = before;
    before += value;
  }
  SYNC();
  for (int i = THREAD; i < TILE && i < left; i += SORT_THREADS) {
    values[i] = tile[SLOT(i)];
  }
}

/* ---- the size of each partition ---- */

struct starts_arguments {
  uint64_t sorted_keys;
  uint64_t starts; /* one more than partitions, of 4 bytes. */
  int64_t rows;
  int64_t partitions;
};

KERNEL(weft_starts, starts_arguments, 256) {
  const uint32_t *keys = (const uint32_t *)a.sorted_keys;
  EACH(partition, a.partitions + 1) {
    int64_t from = 0;
    int64_t to = a.rows;
    while (from < to) {
      int64_t middle = (from + to) >> 1;
      if (keys[middle] < (uint32_t)partition) {
        from = middle + 1;
      } else {
        to = middle;
      }
    }
    ((uint32_t *)a.starts)[partition] = (uint32_t)from;
  }
}

struct lengths_arguments {
  uint64_t sorted_order;
  uint64_t lengths; /* of the strings of the sorted rows, followed by a 0. */
  uint64_t faults;
  int64_t rows;
  struct column column;
};

/* Nulls have no bytes; their offsets are ignored. */
KERNEL(weft_lengths, lengths_arguments, 256) {
  const int32_t *offsets = (const int32_t *)a.column.offsets;
  EACH(i, a.rows + 1) {
    uint32_t length = 0;
    if (i < a.rows) {
      int64_t row = ((const uint32_t *)a.sorted_order)[i];
      int64_t from = offsets[row];
      int64_t to = offsets[row + 1];
      if (is_valid(a.column.validity, row)) {
        if (from < 0 || to < from || to > a.column.bytes) {
          OR((uint32_t *)a.faults, BAD_OFFSETS);
        } else {
          length = (uint32_t)(to - from);
        }
      }
    }
    ((uint32_t *)a.lengths)[i] = length;
  }
}

struct bytes_arguments {
  uint64_t starts;
  uint64_t sums;  /* of the lengths before each sorted row. */
  uint64_t bytes; /* 4 bytes for each partition. */
  int64_t partitions;
};

KERNEL(weft_bytes, bytes_arguments, 256) {
  const uint32_t *starts = (const uint32_t *)a.starts;
  const uint32_t *sums = (const uint32_t *)a.sums;
  EACH(partition, a.partitions) {
    ((uint32_t *)a.bytes)[partition] = sums[starts[partition + 1]] - sums[starts[partition]];
  }
}
