/* Copies every column of a table into its partitions, which follow each other in one range of
 * memory. */

/* The places of the partitions. */
struct packing {
  uint64_t run;
  uint64_t places; /* 8 bytes for each column and partition: the offset of the column. */
  uint64_t starts; /* one more than partitions, of 4 bytes: the first sorted row of each. */
  int64_t partitions;
};

/* One column of one partition. */
struct target {
  char *at;
  int64_t rows;
  uint32_t first;
};

INLINE char *column_at(const struct packing *packing, int64_t column, int64_t partition) {
  const uint64_t *places = (const uint64_t *)packing->places;
  return (char *)packing->run + places[column * packing->partitions + partition];
}

INLINE struct target target_of(const struct packing *packing, int64_t column, int64_t partition) {
  const uint32_t *starts = (const uint32_t *)packing->starts;
  struct target target;
  target.at = column_at(packing, column, partition);
  target.first = starts[partition];
  target.rows = (int64_t)starts[partition + 1] - target.first;
  return target;
}

/* ---- memory that no row writes ---- */

struct clear_arguments {
  struct packing to;
  int64_t columns;
  struct column column[MAX_COLUMNS]; /* offsets: the bytes of strings of each partition. */
};

/* Clears from start + bytes to the end of the section, by the lanes of a warp. */
INLINE void clear_tail(char *start, int64_t bytes) {
  for (int64_t at = bytes + LANE; at < section(bytes); at += 32) {
    start[at] = 0;
  }
}

/* A warp for each column of each partition. */
KERNEL(weft_clear, clear_arguments, 256) {
  int64_t warps = BLOCKS * (THREADS / 32);
  for (int64_t i = BLOCK * (THREADS / 32) + WARP; i < a.columns * a.to.partitions; i += warps) {
    const struct column *column = &a.column[i / a.to.partitions];
    int64_t partition = i % a.to.partitions;
    struct target target = target_of(&a.to, column->number, partition);
    char *at = target.at;
    if (column->validity != 0) {
      for (int64_t word = LANE; word < validity_section(target.rows) / 8; word += 32) {
        ((uint64_t *)at)[word] = 0;
      }
      at += validity_section(target.rows);
    }
    if (column->offsets != 0) {
      int64_t offsets = (target.rows + 1) * 4;
      clear_tail(at, offsets);
      clear_tail(at + section(offsets), ((const uint32_t *)column->offsets)[partition]);
    } else {
      clear_tail(at, target.rows * column->bytes);
    }
  }
}

/* ---- validity bits ---- */

struct validity_arguments {
  struct packing to;
  uint64_t sorted_keys;
  uint64_t sorted_order;
  int64_t rows;
  int64_t columns;
  struct column column[MAX_COLUMNS]; /* all with validity. */
};

/*
 * Rows in the order of the partitions, so a warp has the bits of about two words. The lanes of a
 * word are neighbours, because their rows are; one of them writes it.
 */
KERNEL(weft_pack_validity, validity_arguments, 256) {
  for (int64_t first = BLOCK * THREADS; first < a.rows; first += BLOCKS * THREADS) {
    int64_t i = first + THREAD;
    int is_row = i < a.rows;
    int64_t partition = is_row ? ((const uint32_t *)a.sorted_keys)[i] : 0;
    int64_t row = is_row ? ((const uint32_t *)a.sorted_order)[i] : 0;
    uint32_t local = is_row ? (uint32_t)i - ((const uint32_t *)a.to.starts)[partition] : 0;
    uint32_t word = is_row ? (uint32_t)i - (local & 31) : 0xffffffffu;
    uint32_t same = MATCH(word);
    int is_writer = is_row && (same & ((1u << LANE) - 1)) == 0;
    for (int c = 0; c < a.columns; c++) {
      uint32_t valid = BALLOT(is_row && is_valid(a.column[c].validity, row)) & same;
      if (is_writer && valid != 0) {
        uint32_t *at = (uint32_t *)column_at(&a.to, a.column[c].number, partition);
        OR(at + (local >> 5), valid >> LANE << (local & 31));
      }
    }
  }
}

/* ---- values whose size is a power of two ---- */

struct values_arguments {
  struct packing to;
  uint64_t keys;      /* the partition of each row. */
  uint64_t positions; /* of each row in sorted order. */
  int64_t rows;
  int64_t columns;
  struct column column[MAX_COLUMNS]; /* of 1, 2, 4, 8 or 16 bytes. */
};

/* Reads rows in their order; the second-level cache gathers the scattered writes. */
KERNEL(weft_pack_values, values_arguments, 256) {
  const uint32_t *starts = (const uint32_t *)a.to.starts;
  EACH(row, a.rows) {
    int64_t partition = ((const uint32_t *)a.keys)[row];
    uint32_t first = starts[partition];
    int64_t validity = validity_section((int64_t)starts[partition + 1] - first);
    int64_t local = ((const uint32_t *)a.positions)[row] - first;
    for (int c = 0; c < a.columns; c++) {
      const struct column *column = &a.column[c];
      char *at = column_at(&a.to, column->number, partition);
      at += column->validity != 0 ? validity : 0;
      copy_value(at, local, column->data, row, column->bytes);
    }
  }
}

/* ---- the same values of few partitions, in runs ---- */

struct runs_arguments {
  struct packing to;
  uint64_t counts; /* of a sort of one pass: the first sorted row of each digit in each tile. */
  uint64_t sorted_order;
  int64_t rows;
  int64_t columns;
  struct column column[MAX_COLUMNS]; /* of 1, 2, 4, 8 or 16 bytes. */
};

/* The digit of a row of a sorted tile: the last one with no more rows before it. */
INLINE uint32_t digit_of(const uint32_t *before, uint32_t i) {
  uint32_t digit = 0;
  UNROLL
  for (uint32_t step = DIGITS / 2; step > 0; step /= 2) {
    digit += before[digit + step] <= i ? step : 0;
  }
  return digit;
}

/* Two blocks fit on an SM. Their tiles fit in its cache; smaller blocks would have more tiles. */
#define RUN_THREADS 512
#define RUN_ROWS (TILE / RUN_THREADS)

/* Loads some values, then stores them. Without a row, row 0 is loaded and nothing is stored. */
#define COPY_RUNS(type, loads)                                                         \
  UNROLL                                                                               \
  for (int i = 0; i < RUN_ROWS; i += loads) {                                          \
    type value[loads];                                                                 \
    UNROLL                                                                             \
    for (int k = 0; k < loads; k++) {                                                  \
      value[k] = ((const type *)from)[source[i + k] & 0xffff];                         \
    }                                                                                  \
    UNROLL                                                                             \
    for (int k = 0; k < loads; k++) {                                                  \
      uint32_t j = (uint32_t)((i + k) * RUN_THREADS + THREAD);                         \
      if (j < rows) {                                                                  \
        *(type *)(places[source[i + k] >> 16] + (uint64_t)j * sizeof(type)) = value[k]; \
      }                                                                                \
    }                                                                                  \
  }

/*
 * Copies the rows of one thread in one column of a tile. A source is a row of the tile, with its
 * digit in the upper half. The place of a digit is where row 0 of the sorted tile would go.
 */
INLINE void copy_runs(const uint64_t *places, const char *from, int64_t bytes,
                      const uint32_t *source, uint32_t rows) {
  switch (bytes) {
    case 1: COPY_RUNS(uint8_t, 8); break;
    case 2: COPY_RUNS(uint16_t, 8); break;
    case 4: COPY_RUNS(uint32_t, 8); break;
    case 8: COPY_RUNS(uint64_t, 8); break;
    default: COPY_RUNS(struct pair, 4); break;
  }
}

/*
 * A block for each tile of the sort. After one pass, its rows are neighbours in the table. They are
 * written in sorted order, so that neighbouring threads write neighbouring values of a partition.
 * The reads are scattered, but one column of a tile fits in the first-level cache.
 */
KERNEL(weft_pack_runs, runs_arguments, RUN_THREADS) {
  SHARED uint32_t before[RUN_THREADS]; /* for each digit, the rows of the tile with lower ones. */
  SHARED uint32_t shift[DIGITS];       /* from sorted rows of the tile to all sorted rows. */
  SHARED uint64_t places[2][DIGITS];
  const uint32_t *counts = (const uint32_t *)a.counts;
  int64_t tiles = (a.rows + TILE - 1) / TILE;
  int64_t first_row = BLOCK * TILE;

  /* The rows end where those of the next count start, which may be of the next digit. */
  uint32_t first = 0;
  uint32_t end = 0;
  if (THREAD < DIGITS) {
    int64_t at = THREAD * tiles + BLOCK;
    first = counts[at];
    end = at + 1 < DIGITS * tiles ? counts[at + 1] : (uint32_t)a.rows;
  }
  uint32_t rows;
  uint32_t lower = scan_block(end - first, before, &rows);
  before[THREAD] = lower;
  if (THREAD < DIGITS) {
    shift[THREAD] = first - lower;
  }
  SYNC();

  uint32_t source[RUN_ROWS];
  UNROLL
  for (int i = 0; i < RUN_ROWS; i++) {
    uint32_t j = (uint32_t)(i * RUN_THREADS + THREAD);
    source[i] = 0;
    if (j < rows) {
      uint32_t digit = digit_of(before, j);
      uint32_t row = ((const uint32_t *)a.sorted_order)[shift[digit] + j];
      source[i] = digit << 16 | (row - (uint32_t)first_row);
    }
  }

  const uint32_t *starts = (const uint32_t *)a.to.starts;
  int is_partition = THREAD < a.to.partitions;
  int64_t validity = 0;
  int64_t local = 0; /* of row 0 of the sorted tile, which may be before the partition. */
  if (is_partition) {
    validity = validity_section((int64_t)starts[THREAD + 1] - starts[THREAD]);
    local = (int64_t)first - lower - starts[THREAD];
  }
  for (int c = 0; c < a.columns; c++) {
    const struct column *column = &a.column[c];
    if (is_partition) {
      uint64_t at = (uint64_t)column_at(&a.to, column->number, THREAD);
      at += column->validity != 0 ? validity : 0;
      places[c & 1][THREAD] = at + (uint64_t)(local * column->bytes);
    }
    SYNC(); /* One for each column is enough, because columns take turns with two arrays. */
    const char *from = (const char *)column->data + first_row * column->bytes;
    copy_runs(places[c & 1], from, column->bytes, source, rows);
  }
}

/* ---- wide values, such as rows of tensors ---- */

struct rows_arguments {
  struct packing to;
  uint64_t keys;
  uint64_t positions;
  int64_t rows;
  int64_t unit; /* bytes at a time: 1, 2, 4, 8 or 16, a divisor of the width. */
  struct column column;
};

KERNEL(weft_pack_rows, rows_arguments, 256) {
  int64_t units = a.column.bytes / a.unit;
  int64_t items = a.rows * units;
  EACH(item, items) {
    int64_t row = items >> 32 == 0 ? (int64_t)((uint32_t)item / (uint32_t)units) : item / units;
    int64_t unit = item - row * units;
    struct target target =
        target_of(&a.to, a.column.number, ((const uint32_t *)a.keys)[row]);
    char *to = target.at + (a.column.validity != 0 ? validity_section(target.rows) : 0);
    int64_t local = ((const uint32_t *)a.positions)[row] - target.first;
    copy_value(to, local * units + unit, a.column.data, item, a.unit);
  }
}

/* ---- strings ---- */

struct strings_arguments {
  struct packing to;
  uint64_t sorted_keys;
  uint64_t sorted_order;
  int64_t rows;
  uint64_t sums; /* of the lengths before each sorted row, then the total. */
  struct column column;
};

INLINE char *offsets_of(const struct target *target, const struct column *column) {
  return target->at + (column->validity != 0 ? validity_section(target->rows) : 0);
}

/* A thread for each row, and one for the last offset of each partition. */
KERNEL(weft_pack_offsets, strings_arguments, 256) {
  const uint32_t *sums = (const uint32_t *)a.sums;
  EACH(i, a.rows + a.to.partitions) {
    int64_t partition = i < a.rows ? ((const uint32_t *)a.sorted_keys)[i] : i - a.rows;
    struct target target = target_of(&a.to, a.column.number, partition);
    int64_t local = i < a.rows ? i - target.first : target.rows;
    ((uint32_t *)offsets_of(&target, &a.column))[local] =
        sums[target.first + local] - sums[target.first];
  }
}

/* Bytes that a warp copies before it searches its place again. */
#define STRING_CHUNK 1024

/* The sorted row that contains the byte: the last one with no more bytes before it. */
INLINE int64_t row_of_byte(const uint32_t *sums, int64_t rows, int64_t byte) {
  int64_t from = 0;
  int64_t to = rows;
  while (from < to) {
    int64_t middle = (from + to) >> 1;
    if (sums[middle + 1] <= byte) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

/* Rows that are tried one by one before a binary search. */
#define MAX_STEPS 8

/* Equals row_of_byte, but fast if the result is the given row or one of the next few. */
INLINE int64_t row_from(const uint32_t *sums, int64_t rows, int64_t row, int64_t byte) {
  for (int step = 0; step < MAX_STEPS; step++, row++) {
    if (sums[row + 1] > byte) {
      return row;
    }
  }
  return row_of_byte(sums, rows, byte);
}

/* Neighbouring lanes copy neighbouring bytes, across strings, so several lanes share a long string.
 */
KERNEL(weft_pack_bytes, strings_arguments, 256) {
  const uint32_t *sums = (const uint32_t *)a.sums;
  int64_t total = sums[a.rows];
  int64_t warps = BLOCKS * (THREADS / 32);
  for (int64_t w = BLOCK * (THREADS / 32) + WARP; w * STRING_CHUNK < total; w += warps) {
    int64_t byte = w * STRING_CHUNK + LANE;
    int64_t end = (w + 1) * STRING_CHUNK < total ? (w + 1) * STRING_CHUNK : total;
    int64_t row = -1;
    const char *from = 0;
    char *to = 0;
    for (; byte < end; byte += 32) {
      if (row < 0 || sums[row + 1] <= byte) {
        row = row < 0 ? row_of_byte(sums, a.rows, byte) : row_from(sums, a.rows, row + 1, byte);
        int64_t source = ((const uint32_t *)a.sorted_order)[row];
        struct target target =
            target_of(&a.to, a.column.number, ((const uint32_t *)a.sorted_keys)[row]);
        from = (const char *)a.column.data + ((const int32_t *)a.column.offsets)[source] - sums[row];
        to = offsets_of(&target, &a.column) + section((target.rows + 1) * 4) - sums[target.first];
      }
      to[byte] = from[byte];
    }
  }
}
