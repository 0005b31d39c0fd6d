/* Columns of a table as kernels see them; io.weft.shuffle.device.TableLayout defines their layout. */
#ifndef WEFT_PARTITION_H
#define WEFT_PARTITION_H

#include "kernel.h"

/* Columns of one launch; tables with more columns take several launches. */
#define MAX_COLUMNS 64

enum { BOOLEAN = 1, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, DECIMAL64, DECIMAL128,
       STRING, BINARY, TENSOR };

struct column {
  uint64_t data;     /* values, or the bytes of strings. */
  uint64_t validity; /* bits, lowest first, 1 for a value; 0 if not nullable. */
  uint64_t offsets;  /* of strings: one more than rows, of 4 bytes; else 0. */
  int64_t bytes;     /* of all strings; else of one value. */
  int32_t kind;
  int32_t number; /* among all columns of the table. */
};

INLINE int is_valid(uint64_t validity, int64_t row) {
  return validity == 0 || (((const uint8_t *)validity)[row >> 3] >> (row & 7) & 1);
}

/* Sections of a table begin at multiples of 64 bytes. */
INLINE int64_t section(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

INLINE int64_t validity_section(int64_t rows) { return section((rows + 7) >> 3); }

/* Values whose size is a power of two, at most 16 bytes. */
struct pair {
  uint64_t low;
  uint64_t high;
};

#define COPY(type) ((type *)to)[to_index] = ((const type *)from)[from_index]

INLINE void copy_value(char *to, int64_t to_index, uint64_t from, int64_t from_index,
                       int64_t bytes) {
  switch (bytes) {
    case 1: COPY(uint8_t); break;
    case 2: COPY(uint16_t); break;
    case 4: COPY(uint32_t); break;
    case 8: COPY(uint64_t); break;
    default: COPY(struct pair); break;
  }
}

#endif
